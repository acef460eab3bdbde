//! A finished overlay is put into a pod.

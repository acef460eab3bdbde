//! Values that a pod, its namespace or its ServiceAccount sets.

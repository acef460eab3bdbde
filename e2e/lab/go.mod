// The root of the module. The requirements are in releases/, one file per release of Kubernetes:
// build.sh passes one of them as -modfile.
module kube-lab

go 1.24.0

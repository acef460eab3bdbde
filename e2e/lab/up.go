package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// repeated is a flag which may be given more than once.
type repeated []string

func (r *repeated) String() string     { return fmt.Sprint(*r) }
func (r *repeated) Set(s string) error { *r = append(*r, s); return nil }

func upMain() {
	var extra repeated
	fs := flag.NewFlagSet("kube-lab up", flag.ExitOnError)
	fs.Var(&extra, "apiserver-flag", "another flag for kube-apiserver, such as --v=4 (repeatable)")
	address := fs.String("address", "127.0.0.1", "address on which the API server listens")
	port := fs.Int("port", 0, "port of the API server (0: any); with the same port as before, clients find it again")
	limit := fs.String("memory", "1GiB", "soft memory limit (GOMEMLIMIT) of the API server; etcd and the controller manager get 512MiB")
	timeout := fs.Duration("timeout", 3*time.Minute, "limit of the start")
	fs.Parse(os.Args[1:])
	if fs.NArg() < 1 {
		fmt.Fprintln(os.Stderr, "usage: kube-lab up [flags] DIR [-- CMD ARGS...]")
		fs.PrintDefaults()
		os.Exit(2)
	}
	args := fs.Args()[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}

	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	lab, err := newLab(fs.Arg(0), *address)
	if err == nil {
		err = lab.start(ctx, *port, *limit, extra, *timeout)
	}
	code := 0
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "kube-lab:", err)
		code = 1
	case len(args) > 0:
		code = lab.runCommand(ctx, args)
	default:
		select {
		case <-ctx.Done():
		case err := <-lab.died:
			fmt.Fprintln(os.Stderr, "kube-lab:", err)
			code = 1
		}
	}
	cancel() // a second ctrl-c from here on ends the process at once
	if lab != nil {
		lab.stop()
	}
	os.Exit(code)
}

// lab is one control plane with its files in dir:
//
//	kubeconfig      for the admin (group system:masters)
//	pki/            keys and certificates, see makePKI
//	etcd/           data
//	NAME.log        log of a component
//	NAME.pid        process id of a component
type lab struct {
	dir, address string
	children     []*child
	died         chan error // the first child that ended by itself
}

type child struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
}

func newLab(dir, address string) (*lab, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l := &lab{dir: dir, address: address, died: make(chan error, 3)}
	return l, makePKI(l.pki(""))
}

func (l *lab) pki(name string) string { return filepath.Join(l.dir, "pki", name) }

func (l *lab) start(ctx context.Context, port int, limit string, extra []string, timeout time.Duration) error {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	ports, err := freePorts(l.address, 4)
	if err != nil {
		return err
	}
	if port != 0 {
		ports[2] = port
	}
	etcdURL := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	if err := l.spawn("etcd", "512MiB",
		"--data-dir="+filepath.Join(l.dir, "etcd"),
		"--client-url="+etcdURL,
		fmt.Sprintf("--peer-url=http://127.0.0.1:%d", ports[1]),
	); err != nil {
		return err
	}

	server := "https://" + net.JoinHostPort(l.address, fmt.Sprint(ports[2]))
	adminConfig, err := l.writeKubeconfig("kubeconfig", server, "admin")
	if err != nil {
		return err
	}
	kcmConfig, err := l.writeKubeconfig("kcm.kubeconfig", server, "kcm")
	if err != nil {
		return err
	}

	if err := l.spawn("kube-apiserver", limit, append([]string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=" + l.address,
		fmt.Sprintf("--secure-port=%d", ports[2]),
		// Without these two flags the API server needs a default route, and
		// cannot write a loopback address into the Endpoints of kubernetes.
		"--advertise-address=" + l.address,
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + l.pki("apiserver.crt"),
		"--tls-private-key-file=" + l.pki("apiserver.key"),
		"--client-ca-file=" + l.pki("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + l.pki("sa.pub"),
		"--service-account-signing-key-file=" + l.pki("sa.key"),
		// There is no kube-proxy, but all of 127.0.0.0/8 is this machine. So a
		// Service without a selector, with a clusterIP of this range, leads to
		// the process that listens on that address and the Service's port (not
		// its targetPort). A webhook's clientConfig.service works in this way.
		"--service-cluster-ip-range=127.100.0.0/24",
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
	}, extra...)...); err != nil {
		return err
	}

	client, err := newClient(adminConfig)
	if err != nil {
		return err
	}
	if err := l.wait(ctx, "the API server", func() error {
		return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}); err != nil {
		return err
	}
	ready := time.Since(begin)

	if err := l.spawn("kube-controller-manager", "512MiB",
		"--kubeconfig="+kcmConfig,
		"--authentication-kubeconfig="+kcmConfig,
		"--authorization-kubeconfig="+kcmConfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", ports[3]),
		"--leader-elect=false",
		"--use-service-account-credentials=true",      // RBAC grants permissions to each controller, not to the manager
		"--kube-api-qps=500", "--kube-api-burst=1000", // with the defaults, 20 and 30, the start takes 4 s longer
		"--service-account-private-key-file="+l.pki("sa.key"),
		"--root-ca-file="+l.pki("ca.crt"),
		"--cluster-signing-cert-file="+l.pki("ca.crt"),
		"--cluster-signing-key-file="+l.pki("ca.key"),
	); err != nil {
		return err
	}
	// No pod can be created before the controller manager has created the
	// service account of its namespace. A folder that was used before has it
	// from the beginning, and the controllers may need some seconds more.
	if err := l.wait(ctx, "the controller manager", func() error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("get serviceaccount: %w", err)
		}
		return err
	}); err != nil {
		return err
	}
	fmt.Printf("kube-lab: API server ready after %.1f s, all after %.1f s\nexport KUBECONFIG=%s\n",
		ready.Seconds(), time.Since(begin).Seconds(), adminConfig)
	return nil
}

// spawn starts this binary again as one of its components.
func (l *lab) spawn(name, memory string, args ...string) error {
	log, err := os.Create(filepath.Join(l.dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := &child{name: name, cmd: exec.Command(self, args...), done: make(chan struct{})}
	c.cmd.Args[0] = name
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.Env = append(os.Environ(), "GOMEMLIMIT="+memory)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true,            // ctrl-c is for this process, which stops the children in order
		Pdeathsig: syscall.SIGKILL, // they end with this process
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	l.children = append(l.children, c)
	go func() {
		err := c.cmd.Wait()
		close(c.done)
		l.died <- fmt.Errorf("%s ended (%v), see %s", name, err, log.Name())
	}()
	return os.WriteFile(filepath.Join(l.dir, name+".pid"), fmt.Appendln(nil, c.cmd.Process.Pid), 0o600)
}

// Pdeathsig is tied to the thread that started the child, not to the process:
// the main goroutine must stay on the main thread.
func init() { runtime.LockOSThread() }

// wait polls until try succeeds, ctx ends or a component dies.
func (l *lab) wait(ctx context.Context, what string, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case err := <-l.died:
			return err
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s is not ready", what), ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends the components, the last started first.
func (l *lab) stop() {
	for i := len(l.children) - 1; i >= 0; i-- {
		c := l.children[i]
		c.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-c.done:
		case <-time.After(15 * time.Second):
			c.cmd.Process.Kill()
			<-c.done
		}
		os.Remove(filepath.Join(l.dir, c.name+".pid"))
	}
}

func (l *lab) runCommand(ctx context.Context, args []string) int {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(l.dir, "kubeconfig"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "kube-lab:", err)
		return max(1, cmd.ProcessState.ExitCode())
	}
	return 0
}

// writeKubeconfig makes a kubeconfig with everything in it: it can be copied.
func (l *lab) writeKubeconfig(file, server, user string) (string, error) {
	cfg := clientcmdapi.NewConfig()
	cluster, auth := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	for _, f := range []struct {
		to   *[]byte
		name string
	}{
		{&cluster.CertificateAuthorityData, "ca.crt"},
		{&auth.ClientCertificateData, user + ".crt"},
		{&auth.ClientKeyData, user + ".key"},
	} {
		data, err := os.ReadFile(l.pki(f.name))
		if err != nil {
			return "", err
		}
		*f.to = data
	}
	cluster.Server = server
	cluster.TLSServerName = "localhost" // whatever --address is
	cfg.Clusters["kube-lab"], cfg.AuthInfos[user] = cluster, auth
	cfg.Contexts["kube-lab"] = &clientcmdapi.Context{Cluster: "kube-lab", AuthInfo: user}
	cfg.CurrentContext = "kube-lab"
	path := filepath.Join(l.dir, file)
	return path, clientcmd.WriteToFile(*cfg, path)
}

func newClient(kubeconfig string) (*kubernetes.Clientset, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1 // no client-side rate limit
	cfg.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	return kubernetes.NewForConfig(cfg)
}

// freePorts returns ports which were free on address and on 127.0.0.1 a moment ago.
func freePorts(address string, n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		ln, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
		if err != nil {
			return nil, err
		}
		defer ln.Close() // only at the end, so that all are different
		ports[i] = ln.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

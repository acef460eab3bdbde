//! The flags of `linkerd inject` that change settings. Each becomes the annotation that it stands
//! for, so that this command and the webhook read the same.

use injectd_command::print::print_line;
use injectd_core::linkerd::{annotations::Annotation, snapshot::Snapshot};

mod values;

pub(super) use self::values::namespace;
use self::values::{checked, registry};

/// An annotation that a flag stands for.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) annotation: Annotation,
    pub(super) value: String,
    /// Whether namespaces get it too, for their pods.
    pub(super) on_namespaces: bool,
}

/// Defines the flags: documentation, field, name of the value, and the annotation, whose check the value
/// must pass. Those in `lists` take several values, with commas or by repetition.
macro_rules! settings {
    (
        single {
            $($(#[$doc:meta])* $field:ident $value:literal => $annotation:ident;)*
        }
        lists {
            $($(#[$list_doc:meta])* $list:ident $item:literal => $list_annotation:ident;)*
        }
    ) => {
        /// The flags for settings.
        #[derive(Debug, clap::Args)]
        #[command(next_help_heading = "Settings of Linkerd's proxy, written as annotations")]
        pub(super) struct SettingArgs {
            $(
                $(#[$doc])*
                #[arg(long, value_name = $value, value_parser = |text: &str| checked(Annotation::$annotation, text))]
                $field: Option<String>,
            )*
            $(
                $(#[$list_doc])*
                #[arg(long, value_name = $item, value_delimiter = ',', value_parser = |text: &str| checked(Annotation::$list_annotation, text))]
                $list: Vec<String>,
            )*
            /// Registry of all images; the last part of their names stays
            #[arg(long, value_name = "REGISTRY", value_parser = registry)]
            registry: Option<String>,
            /// Run the proxy as a native sidecar, or not
            #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
            native_sidecar: Option<bool>,
            /// Use service profiles for services outside of Kubernetes, or not
            #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
            enable_external_profiles: Option<bool>,
            /// Add a sidecar for debugging
            #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, action = clap::ArgAction::Set)]
            enable_debug_sidecar: bool,
            /// Run the proxy in ingress mode
            #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, action = clap::ArgAction::Set)]
            pub(super) ingress: bool,
        }

        impl SettingArgs {
            /// The first of these flags that is set.
            pub(super) fn set(&self) -> Option<String> {
                let flags = [
                    $((stringify!($field), self.$field.is_some()),)*
                    $((stringify!($list), !self.$list.is_empty()),)*
                    ("registry", self.registry.is_some()),
                    ("native-sidecar", self.native_sidecar.is_some()),
                    ("enable-external-profiles", self.enable_external_profiles.is_some()),
                    ("enable-debug-sidecar", self.enable_debug_sidecar),
                    ("ingress", self.ingress),
                ];
                let set = flags.into_iter().find(|(_, is_set)| *is_set);
                set.map(|(flag, _)| format!("--{}", flag.replace('_', "-")))
            }

            fn rows(&self) -> impl Iterator<Item = (Annotation, String)> {
                let single = [$((Annotation::$annotation, self.$field.clone()),)*];
                let lists = [$((Annotation::$list_annotation, &self.$list),)*];
                let lists = lists.into_iter().map(|(annotation, values)| {
                    (annotation, (!values.is_empty()).then(|| values.join(",")))
                });
                single
                    .into_iter()
                    .chain(lists)
                    .filter_map(|(annotation, value)| Some((annotation, value?)))
            }
        }
    };
}

settings! {
    single {
        /// Port of the proxy for metrics
        admin_port "PORT" => AdminPort;
        /// Port of the proxy for control
        control_port "PORT" => ControlPort;
        /// Port of the proxy for inbound traffic
        inbound_port "PORT" => InboundPort;
        /// Port of the proxy for outbound traffic
        outbound_port "PORT" => OutboundPort;
        /// Tag of the proxy's image
        #[arg(short = 'v')]
        proxy_version "VERSION" => ProxyVersion;
        /// Name of the proxy's image
        proxy_image "IMAGE" => ProxyImage;
        /// Name of the image of proxy-init
        init_image "IMAGE" => InitImage;
        /// Tag of the image of proxy-init
        init_image_version "VERSION" => InitImageVersion;
        /// Pull policy of all images: `Always`, `IfNotPresent` or `Never`
        image_pull_policy "POLICY" => ImagePullPolicy;
        /// User ID of the proxy
        proxy_uid "UID" => ProxyUid;
        /// Group ID of the proxy
        proxy_gid "GID" => ProxyGid;
        /// Log level of the proxy, such as warn,linkerd=info
        proxy_log_level "LEVEL" => LogLevel;
        /// Log format of the proxy: plain or json
        proxy_log_format "FORMAT" => LogFormat;
        /// CPU that the proxy requests
        #[arg(alias = "proxy-cpu")]
        proxy_cpu_request "QUANTITY" => CpuRequest;
        /// Most CPU that the proxy may use
        proxy_cpu_limit "QUANTITY" => CpuLimit;
        /// Memory that the proxy requests
        #[arg(alias = "proxy-memory")]
        proxy_memory_request "QUANTITY" => MemoryRequest;
        /// Most memory that the proxy may use
        proxy_memory_limit "QUANTITY" => MemoryLimit;
        /// Policy for inbound traffic that no Server resource selects
        default_inbound_policy "POLICY" => DefaultInboundPolicy;
        /// Access log of the proxy: apache or json
        access_log "FORMAT" => AccessLog;
        /// Seconds that the proxy waits before it stops
        wait_before_exit_seconds "SECONDS" => WaitBeforeExitSeconds;
        /// Time that the proxy has for open connections when it stops
        shutdown_grace_period "DURATION" => ShutdownGracePeriod;
        /// Time after which the kernel forgets half-closed connections of the pod
        close_wait_timeout "DURATION" => CloseWaitTimeout;
    }
    lists {
        /// Inbound ports that bypass the proxy: numbers and ranges, such as 22,8100-8102
        skip_inbound_ports "PORTS" => SkipInboundPorts;
        /// Outbound ports that bypass the proxy
        skip_outbound_ports "PORTS" => SkipOutboundPorts;
        /// Subnets that bypass the proxy, such as 10.0.0.0/8
        skip_subnets "CIDRS" => SkipSubnets;
        /// Ports of protocols that the proxy must not detect: numbers, ranges, names. Services get the
        /// annotation too
        opaque_ports "PORTS" => OpaquePorts;
        /// Inbound ports that need a client with a mesh identity
        require_identity_on_inbound_ports "PORTS" => RequireIdentity;
    }
}

impl SettingArgs {
    /// The annotations of all flags that are set. Warns about those that the release does not read.
    pub(super) fn annotations(&self, snapshot: &Snapshot) -> Vec<Setting> {
        let switch = |flag: Option<bool>| flag.map(|flag| flag.to_string());
        let native = [
            Annotation::NativeSidecar,
            Annotation::BetaNativeSidecar,
            Annotation::AlphaNativeSidecar,
        ];
        let native = native.into_iter().find(|annotation| snapshot.supports(*annotation));
        let others = [
            (native.unwrap_or(Annotation::NativeSidecar), switch(self.native_sidecar)),
            (Annotation::EnableExternalProfiles, switch(self.enable_external_profiles)),
            (Annotation::EnableDebugSidecar, self.enable_debug_sidecar.then(|| "true".to_owned())),
        ];
        let others = others.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let images = self.images(snapshot);
        let settings = images.into_iter().chain(self.rows()).chain(others);
        settings
            .map(|(annotation, value)| {
                if !snapshot.supports(annotation) {
                    let (key, release) = (annotation.key(), &snapshot.configuration.release);
                    print_line(&format!("warning: Linkerd {release} does not read {key}"));
                }
                let on_namespaces = !matches!(
                    annotation,
                    Annotation::EnableDebugSidecar | Annotation::CloseWaitTimeout
                );
                Setting { annotation, value, on_namespaces }
            })
            .collect()
    }

    /// The images of --registry: those of the values that the release can override.
    fn images(&self, snapshot: &Snapshot) -> Vec<(Annotation, String)> {
        let Some(registry) = &self.registry else { return Vec::new() };
        let registry = registry.trim_end_matches('/');
        snapshot
            .images()
            .filter(|(annotation, name)| !name.is_empty() && snapshot.supports(*annotation))
            .map(|(annotation, name)| {
                let last = name.rsplit_once('/').map_or(name, |(_, last)| last);
                (annotation, format!("{registry}/{last}"))
            })
            .collect()
    }
}

#!/usr/bin/env python3
"""Compares packaging/kubernetes and packaging/compose with the programs, the image and each other.

    manifests_test.py --source DIR --build DIR            that alone
    manifests_test.py --source DIR --build DIR --schema   judges them by the schemas of Kubernetes and of compose files

The schemas come with packages of the Python registry (packaging/kubernetes/requirements.txt), and kustomize with kubectl.
Without them --schema says so and is skipped (77).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv

import yaml

SKIPPED = 77
KUBERNETES_VERSION = "1.31"
OVERLAYS = ("rdma", "softverbs", "rdma-data")
POD = {"POD_NAME": "gannet-0", "POD_NAMESPACE": "default"}


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)


def documents(path):
    with open(path, encoding="utf-8") as file:
        return [it for it in yaml.safe_load_all(file) if it is not None]


def flag(arguments, name):
    [value] = [it.partition("=")[2] for it in arguments if it.startswith(f"--{name}=")]
    return value


def project_version(source):
    with open(f"{source}/CMakeLists.txt", encoding="utf-8") as file:
        return re.search(r"project\(gannet\s+VERSION\s+([0-9.]+)", file.read(), re.IGNORECASE)[1]


def number_in(path, pattern):
    with open(path, encoding="utf-8") as file:
        return int(re.search(pattern, file.read())[1])


def stop_s(source, wait_s=None):
    """How long a server may take to stop: --stop_wait_s, a hand-over, and its end."""
    if wait_s is None:
        wait_s = number_in(f"{source}/server/main/flags/server_flags.cc", r"stop_wait_s, (\d+),")
    threads = f"{source}/server/main/control/server_threads.cc"
    return wait_s + sum(number_in(threads, rf"{name} = (\d+) \* kNsPerSecond") for name in ("kHandOverNsMax", "kStopNsMax"))


def image_user(source):
    with open(f"{source}/packaging/image/make", encoding="utf-8") as file:
        return int(re.search(r'USER, UID = "gannet", (\d+)', file.read())[1])


class Manifests:
    """The base, as it is before kustomize."""

    def __init__(self, source):
        folder = f"{source}/packaging/kubernetes/base"
        [self.kustomization] = documents(f"{folder}/kustomization.yaml")
        self.all = [it for name in self.kustomization["resources"] for it in documents(f"{folder}/{name}")]

    def find(self, kind, name):
        [it] = [it for it in self.all if it["kind"] == kind and it["metadata"]["name"] == name]
        return it

    def container(self, kind, name):
        [it] = self.find(kind, name)["spec"]["template"]["spec"]["containers"]
        return it


def check_server_takes(build, arguments, who):
    """The server accepts the flags: it goes on to what --check asks for, which is not there."""
    done = run(f"{build}/bin/kvserver", *arguments, "--check=/nonexistent")
    check(done.returncode == 1 and "/nonexistent" in done.stdout, f"{who}: kvserver says {done.returncode} {done.stdout}")


def check_init(build, arguments, who):
    check(arguments[:2] == ["cluster", "init"], f"{who}: {arguments}")
    known = run(f"{build}/bin/kvcli", "help", "cluster").stdout
    for argument in arguments[2:]:
        check(argument.partition("=")[0] in known, f"{who}: kvcli cluster has no {argument}")


def members_of(group):
    return group.partition(":")[2].split(",")


def check_group(manifests, build, source):
    server = manifests.container("StatefulSet", "gannet")
    arguments = server["args"]
    expanded = [re.sub(r"\$\((\w+)\)", lambda it: POD[it[1]], it) for it in arguments]
    check_server_takes(build, expanded, "gannet.yaml")
    job = "gannet-init-" + project_version(source).replace(".", "-")
    init = manifests.container("Job", job)["args"]
    check_init(build, init, "init.yaml")
    for name in ("cluster", "etcd"):
        check(flag(init, name) == flag(arguments, name), f"--{name} of init.yaml is not that of gannet.yaml")
    pods = [f"gannet-{i}" for i in range(manifests.find("StatefulSet", "gannet")["spec"]["replicas"])]
    check(members_of(flag(init, "group")) == pods, f"the group has {flag(init, 'group')}, the StatefulSet {pods}")
    service = manifests.find("Service", "gannet")["spec"]
    check(service["clusterIP"] == "None" and service["publishNotReadyAddresses"], "the service does not give pods' addresses")
    check(flag(expanded, "advertise") == "gannet-0.gannet.default.svc:7471", flag(expanded, "advertise"))
    ports = {it["name"]: it["containerPort"] for it in server["ports"]}
    check(ports == {it["name"]: it["port"] for it in service["ports"]}, "ports of the service and of the pods differ")
    for name, of in (("gannet", "listen"), ("http", "http")):
        check(flag(arguments, of) == f"0.0.0.0:{ports[name]}", f"--{of}={flag(arguments, of)}, and port {ports[name]}")
    for probe, path in (("readinessProbe", "/readyz"), ("livenessProbe", "/healthz"), ("startupProbe", "/healthz")):
        get = server[probe]["httpGet"]
        check(get["path"] == path and get["port"] == "http", f"{probe} asks {get}")
    for kind, name in (("StatefulSet", "gannet"), ("Job", job)):
        user = manifests.find(kind, name)["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
        check(user == image_user(source), f"{kind} {name} runs as {user}")


def check_stop(manifests, source):
    """Nobody is killed who waits for others."""
    pod = manifests.find("StatefulSet", "gannet")["spec"]["template"]["spec"]
    check(pod["terminationGracePeriodSeconds"] > stop_s(source), f"pods end after {pod['terminationGracePeriodSeconds']} s")
    unit_s = number_in(f"{source}/packaging/systemd/kvserver.service", r"TimeoutStopSec=(\d+)s")
    check(unit_s > stop_s(source), f"the service ends after {unit_s} s")


def check_job(manifests, version):
    """The template of a Job cannot be changed. So another version has another Job, and one that is done goes."""
    [job] = [it for it in manifests.all if it["kind"] == "Job"]
    check(job["metadata"]["name"].endswith("-" + version.replace(".", "-")), f"the job {job['metadata']['name']} of {version}")
    check(job["spec"]["ttlSecondsAfterFinished"] <= 300, "a job that is done stays")


def check_places(manifests):
    for name in ("gannet", "etcd"):
        affinity = manifests.find("StatefulSet", name)["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
        [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
        labels = manifests.find("StatefulSet", name)["spec"]["template"]["metadata"]["labels"]
        check(term["topologyKey"] == "kubernetes.io/hostname" and term["labelSelector"]["matchLabels"].items() <= labels.items(),
              f"{name}: {term}")


def admits(peers, labels):
    return any(it["podSelector"]["matchLabels"].items() <= labels.items() for it in peers)


def check_network(manifests):
    """Each pod is let in where it has to go, and strangers are not."""
    pods = {it["metadata"]["name"]: it["spec"]["template"]["metadata"]["labels"] for it in manifests.all
            if it["kind"] in ("StatefulSet", "Job")}
    [job] = [name for name in pods if name.startswith("gannet-init")]
    rules = {}
    for name in ("gannet", "etcd"):
        spec = manifests.find("NetworkPolicy", name)["spec"]
        check(spec["podSelector"]["matchLabels"].items() <= pods[name].items(), f"the policy {name} is for no pod")
        for rule in spec["ingress"]:
            for port in [it["port"] for it in rule.get("ports", [{"port": "all"}])]:
                rules.setdefault((name, port), []).extend(rule.get("from", [{"podSelector": {"matchLabels": {}}}]))
    for who, to in (("gannet", ("gannet", "all")), ("gannet", ("etcd", "client")), (job, ("etcd", "client")),
                    ("etcd", ("etcd", "peer"))):
        check(admits(rules[to], pods[who]), f"{who} does not reach {to}")
    check(admits(rules["gannet", "all"], {"gannet/server": "client"}), "clients do not reach servers")
    check(admits(rules["gannet", "http"], {}), "nobody collects metrics")
    for to in (("gannet", "all"), ("etcd", "client"), ("etcd", "peer")):
        check(not admits(rules[to], {"app": "stranger"}), f"strangers reach {to}")


BYTES = {"Gi": 1 << 30, "Mi": 1 << 20}


def check_etcd_keeps_little(arguments, volume):
    check(flag(arguments, "auto-compaction-mode") == "periodic" and flag(arguments, "auto-compaction-retention") == "1h",
          f"etcd keeps all that ever was: {arguments}")
    quota = int(flag(arguments, "quota-backend-bytes"))
    check(100 << 20 < quota < volume // 2, f"etcd's quota is {quota}, of a volume of {volume}")


def check_etcd(manifests):
    replicas = manifests.find("StatefulSet", "etcd")["spec"]["replicas"]
    urls = [f"http://etcd-{i}.etcd:2379" for i in range(replicas)]
    check(flag(manifests.container("StatefulSet", "gannet")["args"], "etcd").split(",") == urls, "--etcd is not the StatefulSet etcd")
    cluster = ",".join(f"etcd-{i}=http://etcd-{i}.etcd:2380" for i in range(replicas))
    check(f"--initial-cluster={cluster}" in manifests.container("StatefulSet", "etcd")["args"], "--initial-cluster")
    [claim] = manifests.find("StatefulSet", "etcd")["spec"]["volumeClaimTemplates"]
    size = claim["spec"]["resources"]["requests"]["storage"]
    check_etcd_keeps_little(manifests.container("StatefulSet", "etcd")["args"], int(size[:-2]) * BYTES[size[-2:]])


def check_budgets(manifests):
    for name in ("gannet", "etcd"):
        spec = manifests.find("PodDisruptionBudget", name)["spec"]
        labels = manifests.find("StatefulSet", name)["spec"]["template"]["metadata"]["labels"]
        check(spec["maxUnavailable"] == 1 and spec["selector"]["matchLabels"].items() <= labels.items(), f"the budget of {name}")


def check_compose(source, build, version):
    [compose] = documents(f"{source}/packaging/compose/compose.yaml")
    services = compose["services"]
    group = members_of(flag(services["init"]["command"], "group"))
    check_init(build, services["init"]["command"][1:], "compose.yaml")
    endpoint = services["client"]["environment"]["GANNET_SERVER"]
    check(endpoint == "cluster:" + ",".join(f"{name}:7471" for name in group), f"the client's servers are {endpoint}")
    addresses = set()
    for name in (*group, "client"):
        service = services[name]
        check(service["image"] == f"localhost/gannet:{version}", f"{name} has {service['image']}")
        address = service["networks"]["fabric"]["ipv4_address"]
        check(service["environment"]["SOFTVERBS_NET"] == address and address not in addresses, f"{name}'s address {address}")
        addresses.add(address)
    check_etcd_keeps_little(services["etcd"]["command"].split(), 1 << 30)
    check(services["etcd"]["healthcheck"]["test"] == ["CMD", "etcdctl", "endpoint", "health"], "etcd's health")
    check(services["init"]["depends_on"]["etcd"]["condition"] == "service_healthy", "init does not wait for etcd")
    for name in group:
        program, *arguments = services[name]["command"]
        check(program == "kvserver" and flag(arguments, "name") == name, f"{name} runs {services[name]['command']}")
        check(flag(arguments, "advertise") == f"{name}:7471", f"{name} advertises {flag(arguments, 'advertise')}")
        check_server_takes(build, arguments, f"{name} of compose.yaml")
        how, program, asks = services[name]["healthcheck"]["test"]
        port = flag(arguments, "http").rpartition(":")[2]
        check((how, program, asks) == ("CMD", "kvserver", f"--ask_ready=127.0.0.1:{port}"), f"{name}'s health: {program} {asks}")
        asked = run(f"{build}/bin/kvserver", "--ask_ready=127.0.0.1:1")
        check(asked.returncode == 1 and "/readyz" in asked.stdout, f"kvserver {asks} says {asked.returncode} {asked.stdout}")
        least = stop_s(source, int(flag(arguments, "stop_wait_s")))
        check(int(services[name]["stop_grace_period"].removesuffix("s")) > least, f"{name} is killed within {least} s")


def component_flag(source, component, name):
    """The value of a flag that a component adds to the servers'."""
    [made] = documents(f"{source}/packaging/kubernetes/components/{component}/kustomization.yaml")
    [value] = [it["value"] for patch in made["patches"] for it in yaml.safe_load(patch["patch"]) if isinstance(it, dict)]
    return flag([value], name)


def first_line(*command):
    """Starts a server. Returns its first line, or all that it says if it ends."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        line = server.stdout.readline()
        server.terminate()
        return line or server.stderr.read()


def check_rights(source, build):
    """The image's user can use what a pod gets: a Secret and a volume, both of root and of the group fsGroup."""
    if os.geteuid() != 0:
        print("not checked: rights of Secrets and volumes, which need root")
        return
    user = image_user(source)
    become = ("setpriv", f"--reuid={user}", f"--regid={user}", f"--groups={user}", "--pdeathsig=KILL")
    with tempfile.TemporaryDirectory(prefix="gannet-rights-") as work:
        os.chmod(work, 0o755)
        # That user may not be able to enter the folder of the build.
        shutil.copytree(f"{build}/lib/softverbs", f"{work}/lib/softverbs", symlinks=True)
        os.mkdir(f"{work}/bin")
        shutil.copy(f"{build}/bin/kvserver", f"{work}/bin")
        server = (*become, f"{work}/bin/kvserver", "--memory=32M", "--device=soft", "--listen=127.0.0.1:0")
        keys = f"{work}/{os.path.basename(component_flag(source, 'keys', 'auth_file'))}"
        with open(keys, "w", encoding="utf-8") as file:
            file.write(run(f"{build}/bin/kvcli", "genkey").stdout)
        volume = f"{work}/volume"
        os.mkdir(volume)
        for path, mode in ((keys, 0o440), (volume, 0o2775)):
            os.chown(path, 0, user)
            os.chmod(path, mode)
        said = first_line(*server, f"--data={volume}")
        check(f"give {volume}/data" in said, f"a volume itself as --data: {said}")
        data = f"{volume}/{os.path.basename(component_flag(source, 'data', 'data'))}"
        for again in (False, True):
            said = first_line(*server, f"--auth_file={keys}", f"--data={data}")
            check(said.startswith("READY"), f"the image's user, again: {again}: {said}")
        made = os.stat(data)
        check(made.st_uid == user and made.st_mode & 0o777 == 0o700, f"{data} has mode {made.st_mode:o} of {made.st_uid}")


def check_programs(source, build):
    manifests = Manifests(source)
    version = project_version(source)
    check(manifests.kustomization["images"] == [{"name": "gannet", "newName": "localhost/gannet", "newTag": version}],
          f"the image is {manifests.kustomization['images']}, and the version {version}")
    check_group(manifests, build, source)
    check_etcd(manifests)
    check_budgets(manifests)
    check_stop(manifests, source)
    check_job(manifests, version)
    check_places(manifests)
    check_network(manifests)
    check_compose(source, build, version)
    check_rights(source, build)


# --- schemas --------------------------------------------------------------------------------------


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def install_tools(source, build):
    """Makes the virtual environment, unless it is there with the versions that are wanted. Returns its programs."""
    tools = os.path.abspath(f"{build}/image-tools")
    with open(f"{source}/packaging/kubernetes/requirements.txt", encoding="utf-8") as file:
        wanted = f"{file.read()}# by {sys.executable}\n"
    stamp = f"{tools}/installed"
    if not os.path.exists(stamp) or open(stamp, encoding="utf-8").read() != wanted:
        shutil.rmtree(tools, ignore_errors=True)
        venv.create(tools, with_pip=True)
        done = run(f"{tools}/bin/pip", "--disable-pip-version-check", "--timeout=20", "--retries=3", "install", "-q", "-r",
                   f"{source}/packaging/kubernetes/requirements.txt")
        if done.returncode != 0:
            skip(f"the Python registry does not give what judges manifests: {done.stdout[-300:]}")
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(wanted)
    return f"{tools}/bin"


def check_effect(overlay, made):
    """What the overlay is for is there."""
    [server] = [it for it in made if it["kind"] == "StatefulSet" and it["metadata"]["name"] == "gannet"]
    [container] = server["spec"]["template"]["spec"]["containers"]
    check(container["image"].startswith("localhost/gannet:"), f"{overlay}: image {container['image']}")
    if overlay == "rdma-data":
        spec = server["spec"]["template"]["spec"]
        mounts = {it["name"]: it["mountPath"] for it in container["volumeMounts"]}
        check("--data=" + mounts["data"] + "/data" in container["args"], "nothing is kept on the volume")
        check([it["metadata"]["name"] for it in server["spec"]["volumeClaimTemplates"]] == ["data"], "there is no volume")
        [keys] = [it for it in spec["volumes"] if it["name"] == "keys"]
        check("--auth_file=" + mounts["keys"] + "/keys" in container["args"] and keys["secret"]["secretName"] == "gannet-keys",
              "there are no keys")
        check(keys["secret"]["defaultMode"] == 0o440 and spec["securityContext"]["fsGroup"] == spec["securityContext"]["runAsUser"],
              "the servers' user cannot read the keys")
    if overlay.startswith("rdma"):
        check("rdma/hca_shared_devices_a" in container["resources"]["limits"], "rdma asks for no device")
    else:
        check("--device=soft" in container["args"] and "SOFTVERBS_NET" in str(container["env"]), "softverbs is not used")
        affinities = [it["spec"]["template"]["spec"]["affinity"] for it in made if it["kind"] == "StatefulSet"]
        check(len(affinities) == 2 and "required" not in str(affinities), "softverbs needs more than one node")


def judge(tools, path, wrong):
    """A document of the wrong form must be refused, or the schema judges nothing."""
    strict = (f"{tools}/kubernetes-validate", "--strict", "--kubernetes-version", KUBERNETES_VERSION)
    done = run(*strict, path)
    check(done.returncode == 0, done.stdout)
    done = run(*strict, wrong)
    check(done.returncode != 0, "kubernetes-validate takes a StatefulSet with a misspelled field")


def check_schemas(source, build):
    if shutil.which("kubectl") is None:
        skip("there is no kubectl, whose kustomize puts the manifests together")
    tools = install_tools(source, build)
    with tempfile.TemporaryDirectory(prefix="gannet-manifests-") as work:
        for overlay in OVERLAYS:
            made = run("kubectl", "kustomize", f"{source}/packaging/kubernetes/overlays/{overlay}")
            check(made.returncode == 0, made.stdout)
            check_effect(overlay, list(yaml.safe_load_all(made.stdout)))
            path, wrong = f"{work}/{overlay}.yaml", f"{work}/wrong.yaml"
            for name, text in ((path, made.stdout), (wrong, made.stdout.replace("podManagementPolicy", "podManagementPolicies"))):
                with open(name, "w", encoding="utf-8") as file:
                    file.write(text)
            judge(tools, path, wrong)
        compose = f"{source}/packaging/compose/compose.yaml"
        done = run(f"{tools}/check-jsonschema", "--builtin-schema", "vendor.compose-spec", compose)
        check(done.returncode == 0, done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--schema", action="store_true")
    options = parser.parse_args()
    if options.schema:
        check_schemas(options.source, options.build)
    else:
        check_programs(options.source, options.build)


if __name__ == "__main__":
    main()

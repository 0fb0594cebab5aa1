-- jobs_files_spec.lua: the files that flowlua submit writes for each back end are what those read: valid, with a place for every task.
local support = require "spec.support.init"
local flags = require "flow.jobs.flags"
local json = require "flow.json"
local document = require "flow.jobs.document"
local submission = require "flow.jobs.submission"
local writer = require "flow.jobs.yaml_writer"
local yaml = require "flow.jobs.yaml"

local python = os.getenv("FLOW_PYTHON") or "python3"
local CONFIG = [[
trainingInput:
  scaleTier: CUSTOM
  region: us-central1
  masterType: n1-highcpu-16
  masterConfig: {imageUri: "gcr.io/p/flowlua:1", acceleratorConfig: {count: 4, type: NVIDIA_TESLA_T4}}
  workerCount: 2
  workerType: n1-highcpu-16
  workerConfig: {acceleratorConfig: {count: 4, type: NVIDIA_TESLA_T4}}
  parameterServerCount: 1
  parameterServerType: n1-highmem-8
  evaluatorCount: 1
  evaluatorType: n1-highmem-8
  args: ["--epochs", "3"]
  scheduling: {maxRunningTime: 7200s}
]]
local TASKS = { chief = 1, worker = 2, ps = 1, evaluator = 1 }
local SECRET = ("ab"):rep(32)

-- The texts of a job's files by their names, and the job. config: nil for one from flags alone.
local function written(line, config)
  local words = {}
  for word in line:gmatch "%S+" do words[#words + 1] = word end
  local parsed = flags.parse { "digits", unpack(words) }
  if config then parsed.tree = yaml.parse(config, "config.yaml") end
  local job, report = submission.read(parsed)
  assert.same(0, report.errors, table.concat(report:lines(), "\n"))
  job.secret = SECRET
  local texts = {}
  for _, file in ipairs(submission.backend(job.backend).files(job, "/jobs/digits")) do texts[file.name] = file.text end
  return texts, job
end

-- The documents of a YAML text as values.
local function documents(text)
  local list = {}
  for part in (text .. "---\n"):gmatch "(.-)%-%-%-\n" do list[#list + 1] = document.to_value(yaml.parse(part, "written")) end
  return list
end

-- Variables of a container by name: texts, or the secret's key.
local function environment(container)
  local env = {}
  for _, entry in ipairs(container.env or {}) do env[entry.name] = entry.value or entry.valueFrom.secretKeyRef.key end
  return env
end

-- What a process finds itself to be with these variables: "worker 1 of 3".
local function who(variables)
  local list = {}
  for name, value in pairs(variables) do list[#list + 1] = ("%s='%s'"):format(name, value) end
  local code = "local r = flow.distribute.ClusterResolver() print(r.task_type, r.task_id, r.num_workers)"
  return (support.run(("env -u TF_CONFIG %s %s -e '%s'"):format(table.concat(list, " "), support.program, code)))
end

describe("YAML that is written", function()
  local HOSTILE = { "", "a", "yes", "No", "null", "~", "true", "1", "1.0", "0x10", "1e3", "-", "- a", "a: b", "a #b", "#a", "&a", "*a",
    "!a", "%a", "@a", "`a", "{a}", "[a]", "a\nb", "a\n", " a", "a ", "\t", "'", '"', "a'b\"c\\", "2021-01-01", "12:30:45", ".inf", "NaN",
    "=", "<<", "é", "\1\127", "---", "...", "a,b", "?", "? a", "|", ">", "1_000", "0o7", "off", "y", "a:", ":", "$HOME", "\r\n" }

  it("is read back as it was, by libyaml", function()
    if not yaml.available() then return pending("libyaml is not installed") end
    for _, text in ipairs(HOSTILE) do
      local value = { [text] = text, list = { text, { text }, { a = text } } }
      assert.same(value, document.to_value(yaml.parse(writer.encode(value), "written")), ("%q"):format(text))
    end
    math.randomseed(1)
    local function random(depth)
      local kind = math.random(depth > 3 and 3 or 5)
      if kind == 1 then return HOSTILE[math.random(#HOSTILE)]
      elseif kind == 2 then return math.random(-1000, 1000)
      elseif kind == 3 then return math.random() < 0.5 end
      local value = {}
      for i = 1, math.random(4) do value[kind == 4 and i or HOSTILE[math.random(#HOSTILE)]] = random(depth + 1) end
      return value
    end
    for _ = 1, 300 do
      local value = { random(1) }
      assert.same(value, document.to_value(yaml.parse(writer.encode(value), "written")), writer.encode(value))
    end
  end)

  it("is read back as it was, by PyYAML", function()
    if select(2, support.run(python .. " -c 'import yaml'")) ~= 0 then
      return pending("not tested: " .. python .. " has no yaml (pip install pyyaml); name one that has in FLOW_PYTHON")
    end
    local texts = {}
    for i, text in ipairs(HOSTILE) do texts[i] = text end
    local path = support.file("a.yaml", writer.encode { texts = texts, numbers = { 1, 2.5, -3 }, flags = { true, false } })
    local other = support.file("a.json", json.encode { texts = texts, numbers = { 1, 2.5, -3 }, flags = { true, false } })
    local code = "import json, sys, yaml; print(yaml.safe_load(open(sys.argv[1])) == json.load(open(sys.argv[2])))"
    local output = support.run(("%s -c '%s' %s %s"):format(python, code, path, other))
    assert.equal("True\n", output)
  end)
end)

describe("for Kubernetes", function()
  if not yaml.available() then return it("files are valid", function() pending("libyaml is not installed") end) end
  local EVERYTHING = " --git-url https://host/a --git-commit abc --mount gs://bucket/x:/data --mount pvc:c:/q:ro --mount nfs://s/e:/n "
    .. "--mount /srv:/srv:ro --env A=b$(c) --cpus 2 --memory 4Gi --shm-size 2Gi --namespace team --max-restarts 2"

  it("each role is an Indexed Job whose pods find their tasks", function()
    local list = documents(written("--backend kubernetes train.lua", CONFIG)["kubernetes.yaml"])
    assert.equal(5, #list)
    local service = list[1]
    assert.same({ "v1", "Service", "None", true }, { service.apiVersion, service.kind, service.spec.clusterIP,
                                                   service.spec.publishNotReadyAddresses })
    local found = {}
    for i = 2, #list do
      local made = list[i]
      local template = made.spec.template
      local container, role = template.spec.containers[1], template.metadata.labels["flowlua/role"]
      assert.same({ "batch/v1", "Job", "Indexed", TASKS[role], TASKS[role], 7200, "digits-" .. role }, { made.apiVersion, made.kind,
        made.spec.completionMode, made.spec.completions, made.spec.parallelism, made.spec.activeDeadlineSeconds, made.metadata.name })
      assert.equal(service.metadata.name, template.spec.subdomain)
      for name, value in pairs(service.spec.selector) do assert.equal(value, template.metadata.labels[name]) end
      local env = environment(container)
      assert.equal("secret", env.FLOW_SECRET)
      for index = 0, TASKS[role] - 1 do
        found[#found + 1] = who { TF_CONFIG = env.TF_CONFIG, JOB_COMPLETION_INDEX = index }
        local address = ("digits-%s-%d.%s:2222"):format(role, index, service.metadata.name)
        if role ~= "evaluator" then assert.truthy(env.TF_CONFIG:find(address, 1, true), env.TF_CONFIG) end
      end
      assert.same({ "flowlua", "train.lua" }, container.command)
      assert.same({ "--epochs", "3" }, container.args)
      assert.equal((role == "chief" or role == "worker") and 4 or nil, (container.resources or { limits = {} }).limits["nvidia.com/gpu"])
    end
    table.sort(found)
    assert.same({ "chief\t0\t3\n", "evaluator\t0\t1\n", "ps\t0\t3\n", "worker\t0\t3\n", "worker\t1\t3\n" }, found)
  end)

  it("is valid by the schemas of Kubernetes", function()
    if select(2, support.run(python .. " -c 'import kubernetes_validate'")) ~= 0 then
      return pending("not tested: " .. python .. " has no kubernetes_validate (pip install kubernetes-validate); name one that has in "
        .. "FLOW_PYTHON")
    end
    local key = support.file("key.json", "{}")
    for _, line in ipairs { "", EVERYTHING .. " --credentials " .. key, " --restart-policy OnFailure" } do
      for name, text in pairs(written("--backend kubernetes train.lua" .. line, CONFIG)) do
        local path = support.file(name, text)
        local output, code = support.run(("%s -m kubernetes_validate --strict %s"):format(python, path))
        assert.equal(0, code, output)
      end
    end
  end)

  it("has storage, code and keys where they belong", function()
    local texts = written("--backend kubernetes train.lua" .. EVERYTHING, CONFIG)
    local spec = documents(texts["kubernetes.yaml"])[2].spec.template.spec
    local paths = {}
    for _, mount in ipairs(spec.containers[1].volumeMounts) do paths[mount.mountPath] = mount.readOnly or false end
    assert.same({ ["/dev/shm"] = false, ["/data"] = false, ["/q"] = true, ["/n"] = false, ["/srv"] = true, ["/root/code"] = false }, paths)
    assert.equal("/root/code", spec.containers[1].workingDir)
    assert.equal("b$$(c)", environment(spec.containers[1]).A)
    assert.falsy(texts["kubernetes.yaml"]:find(SECRET, 1, true))
    assert.equal(SECRET, documents(texts["kubernetes-secret.yaml"])[1].stringData.secret)
    assert.equal("team", documents(texts["kubernetes-secret.yaml"])[1].metadata.namespace)
  end)

  it("one task is not a cluster", function()
    local list = documents(written("--backend kubernetes --image i train.lua")["kubernetes.yaml"])
    assert.equal(1, #list)
    assert.is_nil(environment(list[1].spec.template.spec.containers[1]).TF_CONFIG)
  end)
end)

describe("for Kubeflow", function()
  if not yaml.available() then return it("files are valid", function() pending("libyaml is not installed") end) end

  it("a TFJob has a container called tensorflow in each role, and its policies", function()
    local made = documents(written("--backend kubeflow train.lua", CONFIG)["kubeflow.yaml"])[1]
    assert.same({ "kubeflow.org/v1", "TFJob", 3, 7200, "Running" }, { made.apiVersion, made.kind, made.spec.runPolicy.backoffLimit,
      made.spec.runPolicy.activeDeadlineSeconds, made.spec.runPolicy.cleanPodPolicy })
    local counts = {}
    for name, replica in pairs(made.spec.tfReplicaSpecs) do
      counts[name] = replica.replicas
      local container = replica.template.spec.containers[1]
      assert.same({ "tensorflow", "tfjob-port", 2222, "OnFailure" }, { container.name, container.ports[1].name,
        container.ports[1].containerPort, replica.restartPolicy })
      assert.equal("secret", environment(container).FLOW_SECRET)
      assert.is_nil(environment(container).TF_CONFIG)      -- the operator's
    end
    assert.same({ Chief = 1, Worker = 2, PS = 1, Evaluator = 1 }, counts)
  end)

  it("an MPIJob has a launcher that calls mpirun, and workers that wait for it", function()
    local texts = written("--backend kubeflow --engine mpi --image i --worker-count 3 train.lua -- --epochs 3")
    local made = documents(texts["kubeflow.yaml"])[1]
    assert.same({ "kubeflow.org/v2beta1", "MPIJob", 1, "OpenMPI" }, { made.apiVersion, made.kind, made.spec.slotsPerWorker,
                                                                    made.spec.mpiImplementation })
    local specs = made.spec.mpiReplicaSpecs
    assert.same({ 1, 4 }, { specs.Launcher.replicas, specs.Worker.replicas })
    local launcher = specs.Launcher.template.spec.containers[1]
    assert.same({ "mpirun" }, launcher.command)
    assert.same({ "-n", "4", "flowlua", "train.lua", "--epochs", "3" }, launcher.args)
    assert.same({ "/usr/sbin/sshd" }, specs.Worker.template.spec.containers[1].command)
  end)
end)

describe("for Slurm", function()
  -- scontrol and srun as they are on a machine with as many hosts as tasks.
  local function run_batch(text, folder)
    for name, script in pairs {
      scontrol = 'for i in 1 2 3 4 5; do echo node$i; done',
      srun = 'for i in $(seq 0 4); do while case $1 in --*) true ;; *) false ;; esac; do shift; done; SLURM_PROCID=$i "$@"; done',
      flowlua = 'echo "$TF_CONFIG $FLOW_SECRET_FILE $@"' } do
      local path = folder .. "/" .. name
      local file = assert(io.open(path, "wb"))
      file:write("#!/bin/bash\n", script, "\n")
      file:close()
      os.execute("chmod +x " .. path)
    end
    local path = support.file("job.sh", text)
    return support.run(("cd %s && PATH=%s:$PATH SLURM_JOB_ID=7 SLURM_JOB_NODELIST='node[1-5]' bash %s"):format(folder, folder, path))
  end

  it("a script says what it needs, and each task makes its TF_CONFIG", function()
    if not yaml.available() then return pending("libyaml is not installed") end
    local text = written("--backend slurm --partition gpu --cpus 8 train.lua", CONFIG)["job.sh"]
    for _, line in ipairs { "--job-name=digits", "--ntasks=5", "--gres=gpu:4", "--time=02:00:00", "--partition=gpu", "--cpus-per-task=8",
                            "--signal=TERM@120", "--requeue" } do
      assert.truthy(text:find("\n#SBATCH " .. line .. "\n", 1, true), line .. "\n" .. text)
    end
    local output, code = run_batch(text, support.folder())
    assert.equal(0, code, output)
    local cluster = '{"chief":["node1:20007"],"worker":["node2:20007","node3:20007"],"ps":["node4:20007"]}'
    local lines = {}
    for _, task in ipairs { '"chief","index":0', '"worker","index":0', '"worker","index":1', '"ps","index":0', '"evaluator","index":0' } do
      lines[#lines + 1] = ('{"cluster":%s,"task":{"type":%s}} /jobs/digits/secret train.lua --epochs 3\n'):format(cluster, task)
    end
    assert.equal(table.concat(lines), output)
  end)

  it("workers alone find each other by Slurm's own variables, or by MPI", function()
    local texts = written("--backend slurm --worker-count 4 train.lua -- a")
    assert.truthy(texts["job.sh"]:find("\nsrun --kill-on-bad-exit=1 flowlua train.lua a\n", 1, true))
    assert.equal(SECRET .. "\n", texts.secret)
    texts = written("--backend slurm --engine mpi --worker-count 4 --max-restarts 2 train.lua -- a")
    assert.truthy(texts["job.sh"]:find("\nsrun --kill-on-bad-exit=0 --mpi=pmix flowlua train.lua a\n", 1, true))
    assert.is_nil(texts.secret)
  end)

  it("code is cloned when the job runs", function()
    local repository, folder = support.folder(), support.folder()
    local commit = "git -c user.name=a -c user.email=a@b commit -qm x"
    local _, code = support.run(("cd %s && git init -q . && echo 1 > train.lua && git add . && %s"):format(repository, commit))
    if code ~= 0 then return pending("git is not installed") end
    local output, ended = run_batch(written("--backend slurm --git-url " .. repository .. " train.lua")["job.sh"] .. "ls\n", folder)
    assert.equal(0, ended, output)
    assert.truthy(output:find("train.lua\n$"), output)
  end)
end)

describe("for Docker Compose", function()
  if not yaml.available() then return it("files are valid", function() pending("libyaml is not installed") end) end

  it("each task is a service that finds itself in TF_CONFIG", function()
    local texts = written("--backend compose --env A=$b --mount nfs://s/e:/n --mount gs://bucket:/b train.lua", CONFIG)
    local made, found = documents(texts["compose.yaml"])[1], {}
    for name, service in pairs(made.services) do
      local role, index = name:match "^(%a+)%-(%d)$"
      assert.same({ "gcr.io/p/flowlua:1", name, "on-failure:3", "1gb", "$$b" }, { service.image, service.hostname, service.restart,
        service.shm_size, service.environment.A })
      assert.same({ "secret.env" }, service.env_file)
      assert.same({ "nfs-1:/n", "/gcs/bucket:/b" }, service.volumes)
      assert.same({ "timeout", "-k", "30", "7200", "flowlua", "train.lua" }, service.entrypoint)
      assert.equal(role .. "\t" .. index, who { TF_CONFIG = service.environment.TF_CONFIG }:match "^%a+\t%d")
      found[#found + 1] = name
    end
    table.sort(found)
    assert.same({ "chief-0", "evaluator-0", "ps-0", "worker-0", "worker-1" }, found)
    assert.equal("FLOW_SECRET=" .. SECRET .. "\n", texts["secret.env"])
    assert.same({ type = "nfs", o = "addr=s,rw", device = ":/e" }, made.volumes["nfs-1"].driver_opts)
    local devices = made.services["chief-0"].deploy.resources.reservations.devices
    assert.same({ { driver = "nvidia", count = 4, capabilities = { "gpu" } } }, devices)
  end)

  it("is valid by docker-compose", function()
    if select(2, support.run("docker-compose version")) ~= 0 then return pending("not tested: docker-compose is not installed") end
    local key, everything = support.file("key.json", "{}"), " --git-url https://host/a --git-commit abc --mount gs://bucket/x:/data "
      .. "--mount nfs://s/e:/n --mount /srv:/srv:ro --env A=b$(c) --cpus 2 --memory 4Gi --shm-size 2Gi --max-restarts 2 --credentials "
    local function check(path)
      local output, code = support.run(("FLOW_SECRET=0123456789abcdef docker-compose --file %s config -q"):format(path))
      assert.equal(0, code, output)
    end
    for _, line in ipairs { "", everything .. key, " --restart-policy Never" } do
      local folder = support.folder()
      for name, text in pairs(written("--backend compose train.lua" .. line, CONFIG)) do
        support.write(folder .. "/" .. name, text)
      end
      check(folder .. "/compose.yaml")
    end
    check(support.root .. "scripts/docker/compose.yaml")
  end)
end)

describe("for the clouds", function()
  if not yaml.available() then return it("files are valid", function() pending("libyaml is not installed") end) end

  it("AI Platform gets the configuration with the flags in it, which is accepted again", function()
    local texts = written("--backend ai-platform --worker-count 3 --labels a=b --job-dir gs://bucket/job --region us-east1 train.lua -- x",
      CONFIG)
    local made = documents(texts["config.yaml"])[1]
    assert.same(made.trainingInput, json.decode(texts["request.json"]).trainingInput)
    assert.same({ 3, "us-east1", "gs://bucket/job", true, "7200s" }, { made.trainingInput.workerCount, made.trainingInput.region,
      made.trainingInput.jobDir, made.trainingInput.useChiefInTfConfig, made.trainingInput.scheduling.maxRunningTime })
    assert.same({ "x" }, made.trainingInput.args)
    assert.same({ a = "b" }, made.labels)
    assert.same({ "env", "FLOW_JOB_DIR=gs://bucket/job", "FLOW_SECRET=" .. SECRET, "flowlua", "train.lua" },
      made.trainingInput.workerConfig.containerCommand)
    assert.same({ count = 4, type = "NVIDIA_TESLA_T4" }, made.trainingInput.workerConfig.acceleratorConfig)
    written("--backend ai-platform train.lua", texts["config.yaml"])
  end)

  it("Vertex AI gets a pool for each role, from either form, which is accepted again", function()
    local texts = written("--backend vertex train.lua", CONFIG)
    local made = documents(texts["custom_job.yaml"])[1]
    local request = json.decode(texts["request.json"])
    assert.same({ displayName = "digits", jobSpec = made }, request)
    local seen = {}
    for i, pool in ipairs(made.workerPoolSpecs) do
      seen[i] = ("%s %d %s"):format(pool.machineSpec.machineType, pool.replicaCount, pool.machineSpec.acceleratorType or "")
      assert.same({ "flowlua", "train.lua" }, pool.containerSpec.command)
    end
    assert.same({ "n1-highcpu-16 1 NVIDIA_TESLA_T4", "n1-highcpu-16 2 NVIDIA_TESLA_T4", "n1-highmem-8 1 ", "n1-highmem-8 1 " }, seen)
    local again = written("--region us-central1 --backend vertex", texts["custom_job.yaml"])
    assert.same(made, documents(again["custom_job.yaml"])[1])
    -- A pool that is left out stays so.
    local skipped = documents(written("--region us-central1 --backend vertex",
      "worker_pool_specs:\n- {machine_spec: {machine_type: n1-standard-4}, container_spec: {image_uri: i}}\n- {}\n"
      .. "- {machine_spec: {machine_type: n1-standard-4}, container_spec: {image_uri: i}, replica_count: 2}\n")["custom_job.yaml"])[1]
    local pools = skipped.workerPoolSpecs
    assert.same({ 3, true, 2 }, { #pools, next(pools[2]) == nil, pools[3].replicaCount })
  end)

  it("PAI-DLC gets a TFJob", function()
    local texts = written("--backend pai-dlc --workspace-id 7 --cpus 8 --memory 32Gi --mount oss://b/f/:/data --code-source-id c "
      .. "--git-branch m train.lua", CONFIG)
    local made = json.decode(texts["request.json"])
    local types = {}
    for i, spec in ipairs(made.JobSpecs) do types[i] = spec.Type .. " " .. spec.PodCount .. " " .. (spec.ResourceConfig.GPU or "0") end
    assert.same({ "Chief 1 4", "Worker 2 4", "PS 1 0", "Evaluator 1 0" }, types)
    assert.same({ "TFJob", "7", 120, "cd /root/code && flowlua train.lua --epochs 3" }, { made.JobType, made.WorkspaceId,
      made.JobMaxRunningTimeMinutes, made.UserCommand })
    assert.same({ { Uri = "oss://b/f/", MountPath = "/data" } }, made.DataSources)
    assert.same({ CodeSourceId = "c", Branch = "m", MountPath = "/root/code" }, made.CodeSource)
  end)
end)

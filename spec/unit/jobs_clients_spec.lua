-- jobs_clients_spec.lua: flowlua submit and flowlua jobs with the back ends' clients, which here write down what they are called with, and
-- flow.jobs.
local support = require "spec.support.init"
local flow = require "flow"

local program = ("FLOWLUA_PATH=%slua %s"):format(support.root, support.program)
local read = function(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

-- A folder for jobs, with clients that say `says` and end with `code`.
local function workplace(says, code)
  local folder = support.folder()
  for _, name in ipairs { "kubectl", "sbatch", "gcloud", "docker", "aliyun", "scancel", "squeue" } do
    local file = assert(io.open(folder .. "/" .. name, "wb"))
    file:write(("#!/bin/sh\necho \"%s $*\" >>%s/calls\necho '%s'\nexit %d\n"):format(name, folder, says or "", code or 0))
    file:close()
    os.execute("chmod +x " .. folder .. "/" .. name)
  end
  local function run(line)
    return support.run(("cd %s && PATH=%s:$PATH XDG_STATE_HOME=%s/state %s %s"):format(folder, folder, folder, program, line))
  end
  return run, folder
end

local SUBMIT = "submit digits --image i --worker-count 1 "

describe("flowlua submit", function()
  it("hands files to the client, and flowlua jobs asks it for the rest", function()
    local run, folder = workplace("12345")
    local home = folder .. "/state/flowlua/jobs/digits/"
    for _, case in ipairs {
      { "kubernetes", { "kubectl apply --filename %skubernetes-secret.yaml --filename %skubernetes.yaml" },
        "kubectl get jobs,pods --selector=flowlua/job=digits",
        "kubectl logs --selector=flowlua/job=digits --prefix --tail=-1 --max-log-requests=5 --follow",
        "kubectl delete --ignore-not-found --filename %skubernetes.yaml --filename %skubernetes-secret.yaml" },
      { "slurm", { "sbatch --parsable %sjob.sh" }, "squeue --jobs 12345 --long", nil, "scancel 12345" },
      { "compose", { "docker compose --file %scompose.yaml --project-name digits up --detach" },
        "docker compose --file %scompose.yaml --project-name digits ps --all",
        "docker compose --file %scompose.yaml --project-name digits logs --follow",
        "docker compose --file %scompose.yaml --project-name digits down --volumes" },
    } do
      local backend, submits, status, logs, cancel = unpack(case, 1, 5)
      local _, code = run(SUBMIT .. "--backend " .. backend .. " train.lua")
      assert.equal(0, code)
      local calls = { (submits[1]:gsub("%%s", home)) }
      for what, call in pairs { ["status digits"] = status, ["logs -f digits"] = logs, ["cancel digits"] = cancel } do
        os.remove(folder .. "/calls.before")
        os.rename(folder .. "/calls", folder .. "/calls.before")
        local output, ended = run("jobs " .. what)
        assert.equal(0, ended, output)
        assert.equal((call:gsub("%%s", home)) .. "\n", read(folder .. "/calls"))
        os.rename(folder .. "/calls.before", folder .. "/calls")
      end
      assert.equal(calls[1] .. "\n", read(folder .. "/calls"))
      os.remove(folder .. "/calls")
    end
  end)

  it("keeps secrets to their owner and makes another one each time", function()
    local run, folder = workplace()
    local secrets = {}
    for i = 1, 2 do
      run(SUBMIT .. "--backend kubernetes train.lua")
      local path = folder .. "/state/flowlua/jobs/digits/kubernetes-secret.yaml"
      assert.equal("-rw-------", (support.run("ls -l " .. path):match "^%S+"))
      secrets[i] = read(path):match "secret: \"?(%x+)\"?\n"
      assert.equal(64, #secrets[i])
    end
    assert.not_equal(secrets[1], secrets[2])
    local shown = run(SUBMIT .. "--backend kubernetes --dry-run train.lua")
    assert.truthy(shown:find('secret: "(made when the job is written)"', 1, true), shown)
  end)

  it("reads a token for Git from the environment only", function()
    local run, folder = workplace()
    local line = SUBMIT .. "--backend kubernetes --git-url https://host/a train.lua"
    local output, code = support.run(("cd %s && GIT_TOKEN=t0ken PATH=%s:$PATH XDG_STATE_HOME=%s/state %s %s"):format(folder, folder, folder,
      program, line))
    assert.equal(0, code, output)
    local home = folder .. "/state/flowlua/jobs/digits/"
    assert.truthy(read(home .. "kubernetes-secret.yaml"):find("git-token: t0ken", 1, true))
    assert.falsy(read(home .. "kubernetes.yaml"):find("t0ken", 1, true))
    assert.falsy(output:find("t0ken", 1, true))
    run(line)
    assert.falsy(read(home .. "kubernetes-secret.yaml"):find("git-token", 1, true))
  end)

  it("says what a client would have run that is missing, was not asked for or failed", function()
    local folder = support.folder()
    -- A PATH with nothing but what a shell needs.
    os.execute(("cd %s && for name in mkdir rm cat sh; do ln -s $(command -v $name) .; done"):format(folder))
    local output, code = support.run(("cd %s && XDG_STATE_HOME=%s/state FLOWLUA_PATH=%slua PATH=%s %s %s"):format(folder, folder,
      support.root, folder, support.program, SUBMIT .. "--backend slurm train.lua"))
    assert.equal(0, code, output)
    assert.truthy(output:find("not submitted: sbatch is not in PATH; where it is: sbatch --parsable " .. folder, 1, true), output)
    local compose = ("cd %s && XDG_STATE_HOME=%s/state FLOWLUA_PATH=%slua PATH=%s %s %s"):format(folder, folder, support.root, folder,
      support.program, SUBMIT .. "--backend compose train.lua")
    assert.truthy(support.run(compose):find("not submitted: docker is not in PATH; where it is: docker compose --file ", 1, true))
    os.execute(("cd %s && printf '#!/bin/sh\\necho composed $1' >docker-compose && chmod +x docker-compose"):format(folder))
    output, code = support.run(compose)
    assert.equal(0, code, output)
    assert.truthy(output:find("composed --file\n", 1, true), output)
    local run = workplace("no such cluster", 3)
    output, code = run(SUBMIT .. "--backend kubernetes train.lua")
    assert.equal(3, code)
    assert.truthy(output:find("no such cluster\n", 1, true))
    assert.truthy(output:find("kubectl failed (exit code 3): kubectl apply", 1, true), output)
    output, code = run(SUBMIT .. "--backend kubernetes --no-submit train.lua")
    assert.equal(0, code)
    assert.truthy(output:find("not submitted: kubectl apply", 1, true), output)
    output, code = run("jobs status digits")
    assert.equal(1, code)
    assert.truthy(output:find("the job digits was written, but not submitted", 1, true), output)
    -- Without --backend nothing is handed over.
    local config = support.file("c.json", '{"trainingInput":{"region":"us-central1","masterConfig":{"imageUri":"i"}}}')
    output, code = run("submit digits --config " .. config .. " train.lua")
    assert.equal(0, code)
    local said = "not submitted, since --backend was not given: gcloud ai-platform jobs submit training digits"
    assert.truthy(output:find(said, 1, true), output)
  end)

  it("jobs name what they do not know", function()
    local run = workplace()
    for line, said in pairs {
      [""] = "no jobs were submitted from here\n",
      ["status x"] = 'flowlua jobs: no job "x" was submitted from here\n',
      ["stauts"] = 'flowlua jobs: "stauts" is not one of status, logs and cancel; did you mean "status"?\n',
      ["logs"] = "flowlua jobs: which job? flowlua jobs logs NAME\n",
      ["cancel -f x"] = "flowlua jobs: -f goes with logs\n",
      ["status a b"] = 'flowlua jobs: "b": one job at a time\n',
    } do
      assert.equal(said, (run("jobs " .. line)))
    end
  end)
end)

describe("a packed program", function()
  -- A package with a module that nobody requires, and one that is required in a comment only.
  local function package()
    local run, folder = workplace("7")
    os.execute(("mkdir %s/trainer"):format(folder))
    for name, text in pairs {
      ["trainer/task.lua"] = 'local model = require "trainer.model"  -- require "trainer.unused"\nprint(model, #arg, arg[1])',
      ["trainer/model.lua"] = "return require('trainer.parts').name .. ' ' .. require [[flow]].version:sub(0, 0)",
      ["trainer/parts.lua"] = 'return { name = "parts" }', ["trainer/unused.lua"] = "error 'unused'",
      ["script.lua"] = 'print(require("trainer.parts").name, ...)',
    } do
      local file = assert(io.open(folder .. "/" .. name, "wb"))
      file:write(text)
      file:close()
    end
    return run, folder
  end
  local PACKED = "--package-path trainer --module-name trainer.task "

  it("has the modules that it requires and no others, and runs where it is unpacked", function()
    local run, folder = package()
    local output, code = run("submit digits " .. PACKED .. "--backend slurm -- 'a b'")
    assert.equal(0, code, output)
    local home = folder .. "/state/flowlua/jobs/digits/"
    assert.equal("./trainer/model.lua\n./trainer/parts.lua\n./trainer/task.lua\n", (support.run("tar -tzf " .. home .. "code.tar.gz")))
    local elsewhere = support.folder()
    os.execute(("printf '#!/bin/sh\\nwhile case $1 in --*) true;; *) false;; esac; do shift; done; exec \"$@\"\\n' >%s/srun; "
      .. "chmod +x %s/srun; ln -s %s %s/flowlua"):format(elsewhere, elsewhere, support.program, elsewhere))
    assert.equal("parts \t1\ta b\n", (support.run(("cd %s && PATH=%s:$PATH FLOWLUA_PATH=%slua bash %sjob.sh"):format(elsewhere, elsewhere,
      support.root, home))))
    run("submit again " .. PACKED .. "--backend slurm -- 'a b'")
    assert.equal("", (support.run(("cmp %scode.tar.gz %s/state/flowlua/jobs/again/code.tar.gz"):format(home, folder))))
  end)

  it("goes to pods in the Secret, to Vertex AI through the bucket, and not to AI Platform", function()
    local run, folder = package()
    local output = run("submit digits " .. PACKED .. "--image i --backend kubernetes")
    local home = folder .. "/state/flowlua/jobs/digits/"
    local text = read(home .. "kubernetes-secret.yaml"):match "data:\n  package: ([%w+/=\"]+)\n"
    assert.truthy(text, output)
    assert.equal("./trainer/model.lua\n", (support.run(("echo %s | base64 -d | tar -tz | head -n 1"):format(text))))
    os.remove(folder .. "/calls")
    output = run("submit digits " .. PACKED .. "--image i --region us-central1 --backend vertex --staging-bucket gs://bucket/x "
      .. "--master-machine-type n1-standard-4")
    assert.truthy(read(folder .. "/calls"):find(("^gcloud storage cp %scode.tar.gz gs://bucket/x/flowlua/digits/code.tar.gz\ngcloud ai "
      .. "custom%%-jobs create"):format((home:gsub("%p", "%%%0")))), output)
    assert.truthy(read(home .. "custom_job.yaml"):find("\n    - /gcs/bucket/x/flowlua/digits/code.tar.gz\n    - flowlua\n", 1, true))
    assert.equal("--package-path: containers of AI Platform see no bucket: put the files into the image (--write-dockerfile)\n"
      .. "flowlua submit: 1 error, nothing was submitted\n", (run("submit digits " .. PACKED .. "--image i --region us-central1 "
      .. "--master-machine-type n1-standard-4 --scale-tier custom --backend ai-platform")))
    assert.equal("flowlua submit: --package-path trainer: there is no module other.task in it\n",
      (run("submit digits --package-path trainer --module-name other.task --backend slurm")))
  end)

  it("becomes an image by a Dockerfile that nobody loses", function()
    local run, folder = package()
    local output, code = run("submit digits --image me/i --write-dockerfile --base-image mine script.lua")
    assert.equal("wrote ./Dockerfile\ndocker build --tag me/i .\ndocker push me/i\n", output)
    assert.equal(0, code)
    assert.equal('FROM mine\nWORKDIR /root\nCOPY ["script.lua", "/root/"]\nCOPY ["trainer", "/root/trainer/"]\n'
      .. 'ENTRYPOINT ["flowlua", "script.lua"]\n', read(folder .. "/Dockerfile"))
    output, code = run("submit digits --write-dockerfile " .. PACKED)
    assert.equal("flowlua submit: ./Dockerfile is already there: --force replaces it\n", output)
    assert.equal(1, code)
    run("submit digits --write-dockerfile --force " .. PACKED)
    assert.truthy(read(folder .. "/Dockerfile"):find('ENTRYPOINT ["flowlua", "-m", "trainer.task"]', 1, true))
  end)
end)

describe("flow.jobs", function()
  local function pool(count, gpus)
    return { machine_spec = { machine_type = "n1-standard-8", accelerator_type = "NVIDIA_TESLA_T4", accelerator_count = gpus },
             replica_count = count, container_spec = { image_uri = "gcr.io/p/i", command = { "flowlua", "-m", "trainer.task" } } }
  end

  it("CustomJob takes the pools of Vertex' Python library", function()
    local job = flow.jobs.CustomJob { display_name = "my job", worker_pool_specs = { pool(1, 2), pool(2, 2) },
                                      staging_bucket = "gs://bucket/" }
    assert.equal("my job", job.display_name)
    assert.equal("my-job", job.name)
    assert.same({}, job:findings())
    local text = job:run { dry_run = true, timeout = 3600 }
    assert.truthy(text:find('outputUriPrefix: "gs://bucket/my-job"', 1, true), text)
    assert.truthy(text:find('timeout: "3600s"', 1, true))
    assert.truthy(text:find('"displayName":"my job"', 1, true))
    assert.truthy(job:run { dry_run = true, backend = "slurm" }:find("srun --kill-on-bad-exit=1 flowlua -m trainer.task\n", 1, true))
  end)

  it("raises all that it found at the caller's line", function()
    local job = flow.jobs.CustomJob { display_name = "j", worker_pool_specs = { pool(1, 3), pool(2, 2) }, location = "us-central2" }
    assert.equal('CustomJob "j" cannot run:\n'
      .. 'CustomJob "j": workerPoolSpecs[0].machine_spec.accelerator_count is 3: n1-standard-8 takes 1, 2 or 4 NVIDIA_TESLA_T4; '
      .. 'the nearest are 2 and 4\nCustomJob "j": region is "us-central2": there is no such region; the nearest name is us-central1',
      support.message_of(function() job:run() end))
    assert.equal(2, #job:findings())
  end)

  it("CustomContainerTrainingJob has one chief, and the other replicas as workers", function()
    local job = flow.jobs.CustomContainerTrainingJob { display_name = "j", container_uri = "gcr.io/p/i" }
    local text = job:run { replica_count = 4, machine_type = "n1-standard-8", accelerator_type = "NVIDIA_TESLA_T4", accelerator_count = 1,
                           args = { "--epochs", "3" }, environment_variables = { A = 1 }, dry_run = true }
    local counts = {}
    for count in text:gmatch "\n  replicaCount: (%d+)" do counts[#counts + 1] = count end
    assert.same({ "1", "3" }, counts)
    assert.truthy(text:find('"args":["--epochs","3"],"env":[{"name":"A","value":"1"}', 1, true), text)
    assert.equal('CustomContainerTrainingJob "j" cannot run:\n'
      .. 'CustomContainerTrainingJob "j": workerPoolSpecs[0].machine_spec.machine_type is "n1-standard-9": there is no such machine; '
      .. "the nearest name is n1-standard-4", support.message_of(function() job:run { machine_type = "n1-standard-9" } end))
  end)
end)

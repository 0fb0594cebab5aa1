-- jobs_edges_spec.lua: what flowlua submit writes of unusual configurations, and what it says of those that a back end cannot run.
local support = require "spec.support.init"
local flags = require "flow.jobs.flags"
local document = require "flow.jobs.document"
local dockerfile = require "flow.jobs.dockerfile"
local package_of = require "flow.jobs.package"
local submission = require "flow.jobs.submission"
local writer = require "flow.jobs.yaml_writer"

-- The job of a command line, with a configuration as a table of Lua, and the findings.
local function read(words, config)
  local parsed = flags.parse { "digits", unpack(words) }
  parsed.tree = config and document.from_value(config, "config")
  return submission.read(parsed)
end

-- Its files' texts by their names.
local function written(words, config)
  local job, report = read(words, config)
  assert.same({}, report:lines())
  job.secret, job.folder_of_call = ("ab"):rep(32), "/here"
  local texts = {}
  for _, file in ipairs(submission.backend(job.backend).files(job, "/jobs/digits")) do texts[file.name] = file.text end
  return texts
end

-- A configuration of Vertex AI: a pool for each entry { args =, env = }.
local function pools(...)
  local list = {}
  for i, entry in ipairs { ... } do
    local env = {}
    for name, value in pairs(entry.env or {}) do env[#env + 1] = { name = name, value = value } end
    list[i] = { machineSpec = { machineType = "n1-standard-4" }, replicaCount = 1,
                containerSpec = { imageUri = "i", args = entry.args, env = #env > 0 and env or nil } }
  end
  return { workerPoolSpecs = list }
end

describe("a job's files", function()
  it("have the variables of the configuration, for each back end", function()
    local config = pools { env = { DATA = "/d", MODE = "config" } }
    local words = { "--env", "MODE=flag", "--env", "MORE=1", "train.lua" }
    for backend, wanted in pairs {
      slurm = { "job.sh", "export DATA=/d\nexport MODE=config\nexport MORE=1\n" },
      compose = { "compose.yaml", "      DATA: /d\n      MODE: config\n      MORE: \"1\"\n" },
    } do
      local text = written({ "--backend", backend, unpack(words) }, config)[wanted[1]]
      assert.truthy(text:find(wanted[2], 1, true), backend .. "\n" .. text)
    end
    local folder = support.folder()
    require("flow.io").write(folder .. "/job.json", require("flow.json").encode(config))
    local script = support.run(("cd %s && FLOWLUA_PATH=%slua %s submit digits --config job.json --backend local --dry-run %s 2>&1"):format(
      folder, support.root, support.program, table.concat(words, " ")))
    assert.truthy(script:find("export DATA=/d\nexport MODE=config\nexport MORE=1\n", 1, true), script)
    local text = written({ "--backend", "pai-dlc", "--workspace-id", "1", "--ecs-spec", "e", unpack(words) }, config)["request.json"]
    assert.truthy(text:find('"DATA":"/d"', 1, true), text)
    text = written({ "--backend", "ai-platform", "--region", "us-central1", unpack(words) }, config)["config.yaml"]
    local variables = { '- env\n', '- "DATA=/d"\n', '- "MODE=config"\n', '- "MORE=1"\n', "- flowlua\n" }
    assert.truthy(text:find(table.concat(variables, "    "), 1, true), text)
  end)

  it("are refused where roles differ and all tasks start alike", function()
    for backend, service in pairs { ["local"] = "flowlua launch", slurm = "srun" } do
      local _, report = read({ "--backend", backend, "train.lua" }, pools({ args = { "a" } }, { args = { "b" } }))
      assert.same(1, report.errors, backend)
      assert.truthy(report:lines()[1]:find("has other args than .* starts all tasks alike$") and report:lines()[1]:find(service, 1, true),
        report:lines()[1])
      _, report = read({ "--backend", backend, "train.lua" }, pools({}, { env = { A = "1" } }))
      assert.truthy(report:lines()[1]:find("has other env than", 1, true), report:lines()[1])
      _, report = read({ "--backend", backend, "train.lua", "--", "c" }, pools({ args = { "a" } }, { args = { "b" } }))
      assert.same(0, report.errors)
    end
  end)

  it("say quantities in their service's units, or that it has none for them", function()
    local words = { "--backend", "compose", "--image", "i", "--cpus", "500m", "train.lua" }
    assert.truthy(written(words)["compose.yaml"]:find("    cpus: 0.5\n", 1, true) or written(words)["compose.yaml"])
    assert.truthy(written(words)["compose.yaml"]:find("cpus: \"?0%.5"), written(words)["compose.yaml"])
    words[6] = "5x"
    local _, report = read(words)
    assert.truthy(report:lines()[1]:find('--cpus: "5x" is not a number of processors', 1, true))
    for given, wanted in pairs { ["16Gi"] = "16384M", ["1.5Gi"] = "1536M", ["1G"] = "954M", ["1073741824"] = "1024M" } do
      local text = written { "--backend", "slurm", "--memory", given, "train.lua" }["job.sh"]
      assert.truthy(text:find("\n#SBATCH --mem=" .. wanted .. "\n", 1, true), given .. "\n" .. text)
    end
    _, report = read { "--backend", "slurm", "--cpus", "500m", "--memory", "3Q", "train.lua" }
    assert.same({ '--cpus: "500m": Slurm gives a task whole processors, from 1', '--memory: "3Q" is not bytes, Ki, Mi, Gi or Ti' },
      report:lines())
  end)

  it("have a time limit that is rounded up", function()
    for seconds, wanted in pairs { [59.5] = "00:01:00", [3599.2] = "01:00:00", [0.5] = "00:00:01", [3661] = "01:01:01" } do
      local config = pools {}
      config.scheduling = { timeout = ("%gs"):format(seconds) }
      local text = written({ "--backend", "slurm", "train.lua" }, config)["job.sh"]
      assert.truthy(text:find("\n#SBATCH --time=" .. wanted .. "\n", 1, true), wanted .. "\n" .. text)
    end
  end)

  it("keep numbers and keys unchanged", function()
    assert.equal("a: 1234567890123456\nb: 0.1\nc: 0.30000000000000004\n",
      writer.encode { a = 1234567890123456, b = 0.1, c = 0.1 + 0.2 })
    assert.same({ ["2"] = "b", ["10"] = 1234567890123456 },
      document.to_value(document.from_value({ [2] = "b", [10] = 1234567890123456 }, "config")))
  end)
end)

describe("a package", function()
  it("is not packed without one of its files", function()
    local folder = support.folder()
    support.run(("echo 1 >%s/train.lua"):format(folder))
    local ok, message = pcall(package_of.pack, { root = folder, files = { "train.lua", "gone.lua" } })
    assert.is_false(ok)
    assert.truthy(tostring(message):find("cannot be packed", 1, true))
    assert.is_true(#package_of.pack { root = folder, files = { "train.lua" } } > 20)
    assert.truthy(package_of.pack({ root = folder, files = { "train.lua" } }, true):find "^[%w+/=]+$")
  end)

  it("with a comma in a name is copied under this name", function()
    local folder = support.folder()
    support.run(("echo 1 >'%s/a,b.lua'"):format(folder))
    local text = dockerfile.text({ what = { "a,b.lua" } }, folder, "")
    assert.truthy(text:find('COPY ["a,b.lua", "/root/"]\nENTRYPOINT ["flowlua", "a,b.lua"]', 1, true), text)
  end)
end)

describe("flowlua submit", function()
  it("raises when the file of the secret cannot be written", function()
    local folder = support.folder()
    support.run(("mkdir -p %s/out/secret"):format(folder))
    local program = ("FLOWLUA_PATH=%slua %s"):format(support.root, support.program)
    local output, code = support.run(("cd %s && XDG_STATE_HOME=%s/state %s submit digits --backend slurm --output-dir out --worker-count 1 "
      .. "train.lua 2>&1"):format(folder, folder, program))
    assert.equal(1, code, output)
    assert.truthy(output:find("secret cannot be written", 1, true), output)
  end)
end)

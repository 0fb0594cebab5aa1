-- jobs_validation_spec.lua: configurations of jobs that a platform would accept or refuse, with all that is said of each.
local support = require "spec.support.init"
local flags = require "flow.jobs.flags"
local submission = require "flow.jobs.submission"
local yaml = require "flow.jobs.yaml"
local cases = require "spec.support.job_cases"

local gpus = cases.gpus

-- What is said of a configuration with these flags: a list of lines; an error that is raised is one.
local function findings(text, line, script)
  local words = {}
  for word in (line or ""):gmatch "%S+" do words[#words + 1] = word end
  local ok, result = pcall(function()
    if script ~= false and not (line or ""):find "train" then table.insert(words, 1, "train.lua") end
    local parsed = flags.parse { "job", unpack(words) }
    if text then parsed.tree = yaml.parse(text, "config.yaml") end
    local _, report = submission.read(parsed)
    return report:lines()
  end)
  return ok and result or { (result:gsub("^[^\n]*_spec%.lua:%d+: ", "")) }
end

-- "Using GPUs for training models in the cloud": how many GPUs a machine takes.
local KINDS = { "A100", "K80", "P4", "P100", "T4", "V100" }
local GPUS = [[
n1-standard-4  | - | 1 2 4 8 | 1 2 4 | 1 2 4 | 1 2 4 | 1 2 4 8
n1-standard-8  | - | 1 2 4 8 | 1 2 4 | 1 2 4 | 1 2 4 | 1 2 4 8
n1-standard-16 | - | 2 4 8 | 1 2 4 | 1 2 4 | 1 2 4 | 2 4 8
n1-standard-32 | - | 4 8 | 2 4 | 2 4 | 2 4 | 4 8
n1-standard-64 | - | - | 4 | - | 4 | 8
n1-standard-96 | - | - | 4 | - | 4 | 8
n1-highmem-2   | - | 1 2 4 8 | 1 2 4 | 1 2 4 | 1 2 4 | 1 2 4 8
n1-highmem-4   | - | 1 2 4 8 | 1 2 4 | 1 2 4 | 1 2 4 | 1 2 4 8
n1-highmem-8   | - | 1 2 4 8 | 1 2 4 | 1 2 4 | 1 2 4 | 1 2 4 8
n1-highmem-16  | - | 2 4 8 | 1 2 4 | 1 2 4 | 1 2 4 | 2 4 8
n1-highmem-32  | - | 4 8 | 2 4 | 2 4 | 2 4 | 4 8
n1-highmem-64  | - | - | 4 | - | 4 | 8
n1-highmem-96  | - | - | 4 | - | 4 | 8
n1-highcpu-16  | - | 2 4 8 | 1 2 4 | 1 2 4 | 1 2 4 | 2 4 8
n1-highcpu-32  | - | 4 8 | 2 4 | 2 4 | 2 4 | 4 8
n1-highcpu-64  | - | 8 | 4 | 4 | 4 | 8
n1-highcpu-96  | - | - | 4 | - | 4 | 8
a2-highgpu-1g  | 1 | - | - | - | - | -
a2-highgpu-2g  | 2 | - | - | - | - | -
a2-highgpu-4g  | 4 | - | - | - | - | -
a2-highgpu-8g  | 8 | - | - | - | - | -
a2-megagpu-16g | 16 | - | - | - | - | -
]]

describe("a job", function()
  if not yaml.available() then return it("in YAML", function() pending("libyaml is not installed") end) end

  for i, case in ipairs(cases.list) do
    local name = (case[1] or ""):gsub("%s+", " "):gsub("trainingInput: scaleTier: CUSTOM region: us%-central1 ", ""):sub(1, 90)
    it(("%d is %s: %s %s"):format(i, case.says and "answered" or "accepted", name, case[2] or ""), function()
      assert.same(case.says or {}, findings(case[1], case[2], case.script))
    end)
  end

  it("is given the GPUs that the service's table has, and no others", function()
    local rows = 0
    for line in GPUS:gmatch "[^\n]+" do
      local machine, cells, kind = line:match "^(%S+)", {}, 0
      rows = rows + 1
      for cell in line:gmatch "|([^|]*)" do
        kind = kind + 1
        cells[kind] = cell
      end
      for i = 1, kind do
        for count = 1, 17 do
          local valid = (" " .. cells[i] .. " "):find((" %d "):format(count), 1, true) ~= nil
          local said = findings(gpus(machine, count, "NVIDIA_TESLA_" .. KINDS[i]))
          assert.equal(valid, #said == 0, ("%s with %d %s: %s"):format(machine, count, KINDS[i], tostring(said[1])))
        end
      end
    end
    assert.equal(22, rows)
  end)

  it("names a machine, a GPU or a number of them that is valid", function()
    for line in GPUS:gmatch "[^\n]+" do
      for _, kind in ipairs(KINDS) do
        for count = 1, 17 do
          local machine, gpu = line:match "^(%S+)", "NVIDIA_TESLA_" .. kind
          local said = findings(gpus(machine, count, gpu))[1] or ""
          for nearest in (said:match "; the nearest [ia][sr]e? ([%d and]+)" or ""):gmatch "%d+" do
            assert.same({}, findings(gpus(machine, nearest, gpu)), said)
          end
          local other = said:match "; the nearest machine with %d+ %S+ is (%S+)" or said:match "; (%S+) takes %d+$"
          if other then assert.same({}, findings(gpus(other, count, gpu)), said) end
        end
      end
    end
  end)
end)

describe("YAML that jobs do not have", function()
  if not yaml.available() then return it("is refused", function() pending("libyaml is not installed") end) end

  local DEEP = ("[\n"):rep(70)
  for _, case in ipairs {
    { "a: &x 1\nb: *x\n", "config.yaml:1:4: &x: anchors are not supported: write the value out" },
    { "a: [*x]\n", "config.yaml:1:5: *x: aliases are not supported: write the value out" },
    { "a: [1, 2\nb: 3\n", "config.yaml:2:2: not YAML: while parsing a flow sequence: did not find expected ',' or ']'" },
    { "a: 1\na: 2\n", 'config.yaml:2:1: "a" is given a second time: keep one' },
    { "---\na: 1\n---\nb: 2\n", "config.yaml:3:1: a second document begins: one job is in a file" },
    { "a: !!str 1\n", "config.yaml:1:4: tag:yaml.org,2002:str: tags are not supported: leave it out" },
    { "a:\n\t- b\n", "config.yaml:2:1: not YAML: while scanning for the next token: found character that cannot start any token" },
    { "? [a]\n: b\n", "config.yaml:1:3: a key has to be a text" },
    { DEEP, "config.yaml:65:1: nested more than 64 deep" },
    { "a: \1\n", "config.yaml:1:1: not YAML: control characters are not allowed" },
  } do
    it("is refused with line and column: " .. case[1]:gsub("%c", " "):sub(1, 40), function()
      assert.same({ case[2] }, findings(case[1]))
    end)
  end

  it("does not take more than is there, nor more memory than a file of 4 MB", function()
    assert.same({ "config.yaml: 4194305 bytes, a job file has at most 4194304" }, findings((" "):rep(2^22 + 1)))
    assert.same({ "config.yaml:1:200000: more than 100000 values" }, findings("[" .. ("1,"):rep(200000) .. "]"))
  end)
end)

describe("flowlua submit", function()
  local program = ("FLOWLUA_PATH=%slua %s"):format(support.root, support.program)

  it("says all that it found and submits nothing, or reads what JSON says", function()
    local path = support.file("config.json",
      '{"trainingInput": {"scaleTier": "CUSTOM", "region": "us-central1",\n "masterType": "n1-standard-3"}}')
    local output, code = support.run(("%s submit job --config %s --dry-run --backend kubernetes"):format(program, path))
    assert.equal(1, code)
    assert.equal(path .. ':2: masterType is "n1-standard-3": there is no such machine; the nearest name is n1-standard-32\n'
      .. "flowlua submit: 1 error, nothing was submitted\n", output)
  end)

  it("names a file that is not there", function()
    local output, code = support.run(program .. " submit job --config nowhere.yaml")
    assert.equal(1, code)
    assert.equal("flowlua submit: the configuration cannot be read: nowhere.yaml: No such file or directory\n", output)
    for _, text in ipairs { "", "# nothing\n" } do
      local path = support.file("config.yaml", text)
      assert.equal(path .. ":1: trainingInput is missing\nflowlua submit: 1 error, nothing was submitted\n",
        (support.run(("FLOWLUA_PATH=%slua %s submit digits --config %s 2>&1"):format(support.root, support.program, path))))
    end
  end)

  it("reads JSON without libyaml", function()
    local script = support.file("s.lua", [[
      local native = require "flow.ffi"
      native.other_library = function() return nil end
      local yaml = require "flow.jobs.yaml"
local cases = require "spec.support.job_cases"

local gpus = cases.gpus
      print(yaml.available(), yaml.parse('{"a": [1, "x", true, null]}', "c.json").entries.a.items[2].text)
      print(select(2, pcall(yaml.parse, "a: 1", "c.yaml")))]])
    local output = support.run(program .. " " .. script)
    assert.equal("false\tx\n" .. script .. ":8: c.yaml: YAML is read by libyaml, which is not installed (Debian: libyaml-0-2); a file of "
      .. "JSON, NAME.json, works without it\n", output)
  end)
end)


describe("whatever a file says", function()
  if not yaml.available() then return it("is answered", function() pending("libyaml is not installed") end) end

  local CONFIGS = { [[
labels: {a: b}
trainingInput:
  scaleTier: CUSTOM
  region: us-central1
  masterType: n1-highcpu-16
  masterConfig:
    imageUri: i
    containerCommand: [a]
    containerArgs: [b]
    diskConfig: {bootDiskType: pd-ssd, bootDiskSizeGb: 100}
    acceleratorConfig: {count: 4, type: NVIDIA_TESLA_T4}
  workerCount: 2
  workerType: n1-highcpu-16
  workerConfig: {acceleratorConfig: {count: 4, type: NVIDIA_TESLA_T4}}
  evaluatorCount: 1
  evaluatorType: n1-highmem-8
  runtimeVersion: '2.1'
  packageUris: [gs://a/b]
  jobDir: gs://bucket/x
  args: ["--epochs", "3"]
  scheduling: {maxRunningTime: 7200s, priority: 1}
]], [[
displayName: x
jobSpec:
  workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-8, acceleratorType: NVIDIA_TESLA_T4, acceleratorCount: 1}
    replicaCount: 1
    diskSpec: {bootDiskType: pd-ssd, bootDiskSizeGb: 100}
    nfsMounts: [{server: a, path: /b, mountPoint: /c}]
    containerSpec: {imageUri: i, command: [flowlua, t.lua], args: [a], env: [{name: a, value: y}]}
  - {}
  - {machineSpec: {machineType: n1-standard-8}, pythonPackageSpec: {executorImageUri: i, pythonModule: m, packageUris: [a]}}
  baseOutputDirectory: {outputUriPrefix: gs://bucket}
  scheduling: {timeout: 3600s}
]] }
  local VALUES = { '""', "~", "abc", "-1", "0", "1e9", "true", "[]", "{}", "[a, [b], {c: d}, 3]", "{a: {b: c}, count: x}",
    "[{}, {}, {}, {}, {}]", "[~, 1]" }

  -- Calls f(put, node) for each node below a node; put(other) puts another one into its place.
  local function each(node, f)
    local list, places = node.entries or node.items or {}, {}
    for place in pairs(list) do places[#places + 1] = place end
    for _, place in ipairs(places) do
      local old = list[place]
      f(function(other) list[place] = other end, old)
      each(old, f)
    end
  end

  it("is answered by findings or by files, never by an error of ours", function()
    local count, wrong = 0, {}
    for _, text in ipairs(CONFIGS) do
      local tree = yaml.parse(text, "f")
      each(tree, function(put, old)
        for _, value in ipairs(VALUES) do
          put((yaml.parse("v: " .. value, "f").entries.v))
          for backend in pairs(submission.BACKENDS) do
            count = count + 1
            local parsed = flags.parse { "job", "--backend", backend, "--region", "us-central1", "--workspace-id", "1", "--ecs-spec", "e",
                                         count % 2 == 0 and "t.lua" or nil }
            parsed.tree = tree
            local ok, problem = pcall(function()
              local job, report = submission.read(parsed)
              if report.errors == 0 then submission.preview(job) end
            end)
            problem = not ok and tostring(problem)
            if problem and not problem:find "^[^\n]*_spec%.lua:%d+: " then wrong[#wrong + 1] = value .. ": " .. problem end
          end
        end
        put(old)
      end)
    end
    assert.equal("", table.concat(wrong, "\n"))
    assert.is_true(count > 5000, count)
  end)
end)

-- gan_spec.lua: a step that updates one network and then takes another one's gradient through it (gan.lua) is the same on several replicas
-- as on one: in one process, in several, and on GPUs.
local support = require "spec.support.init"
local emulated = require "spec.support.emulated"

local script = support.root .. "spec/dist/gan.lua"

local function train(command, environment)
  local text, code = support.run(("%s timeout -k 5 280 %s"):format(environment or "", command))
  assert.equal(0, code, text)
  local run = { steps = {}, weights = {}, text = text }
  for line in text:gmatch "[^\n]+" do
    local d, g = line:match "^step (%S+) (%S+)$"
    if not d then d, g = line:match "^%[worker:0%] step (%S+) (%S+)$" end
    if d then run.steps[#run.steps + 1] = { tonumber(d), tonumber(g) } end
    local size, bits = line:match "weights (%S+) (%S+ count %d+)$"
    if size then run.size, run.weights[#run.weights + 1] = tonumber(size), bits end
  end
  return run
end

local function alone(arguments, environment)
  return train(("%q %q %s"):format(support.program, script, arguments), environment)
end

local single = {}

local function check(run, arguments, processes)
  single[arguments] = single[arguments] or alone(arguments)
  local one = single[arguments]
  assert.equal(12, #one.steps, one.text)
  assert.equal(12, #run.steps, run.text)
  for i, losses in ipairs(one.steps) do
    for k = 1, 2 do assert.truthy(math.abs(losses[k] - run.steps[i][k]) < 2e-5, ("step %d\n%s\n%s"):format(i, one.text, run.text)) end
  end
  assert.truthy(math.abs(one.size - run.size) < 1e-4 * one.size, one.text .. run.text)
  assert.equal(processes, #run.weights, run.text)
  for _, weights in ipairs(run.weights) do assert.equal(run.weights[1], weights, run.text) end
  assert.equal(one.weights[1]:match "count %d+", run.weights[1]:match "count %d+")
end

describe("a step that reads what it has updated", function()
  it("is the same on several devices of a process", function()
    for _, arguments in ipairs { "", "--twice", "--optimizer SGD", "--twice --overlap" } do
      for devices = 2, 4 do check(alone(("--devices %d %s"):format(devices, arguments)), arguments, 1) end
    end
  end)

  for _, case in ipairs { { "RING", 2, "" }, { "RING", 3, "--twice" }, { "RING", 2, "", "FLOW_SHARED_MEMORY=0" }, { "MPI", 2, "--twice" },
                          { "RING", 3, "--twice --overlap" }, { "MPI", 2, "--twice --overlap", "FLOW_SHARED_MEMORY=0" },
                          { "MPI", 2, "", "FLOW_SHARED_MEMORY=0" } } do
    local engine, count, arguments, environment = unpack(case, 1, 4)
    it(("is the same by %d workers: %s %s %s"):format(count, engine, arguments, environment or ""), function()
      local missing = support.missing_engine(engine, true)
      if missing then return pending(missing) end
      check(train(("%q launch --workers %d --threads 1 --engine %s %q -- --engine %s %s"):format(support.program, count,
        engine == "MPI" and "mpi" or "ring", script, engine, arguments), environment), arguments, count)
    end)
  end

  it("is the same on GPUs", function()
    if emulated.missing() then return pending(emulated.missing()) end
    for gpus = 2, 3 do
      local environment = ("FLOW_PLUGINS=%s FLOW_EMULATED_GPUS=%d"):format(emulated.folder, gpus)
      for _, arguments in ipairs { "--twice", "--twice --overlap" } do
        check(alone(("--gpus %d %s"):format(gpus, arguments), environment), arguments, 1)
      end
    end
  end)
end)

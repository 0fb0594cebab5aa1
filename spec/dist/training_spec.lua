-- training_spec.lua: a model is the same model on any number of replicas: the same training (training.lua) by one replica, by several in a
-- process and by several processes has the same losses, has used every sample once an epoch, and leaves the same weights everywhere.
local support = require "spec.support.init"

local script = support.root .. "spec/dist/training.lua"

-- Why an engine cannot be tried, or nil.
local MISSING = { RING = support.missing_engine("RING", true), MPI = support.missing_engine("MPI", true) }

local function alone(arguments)
  return ("timeout -k 5 60 %q %q %s"):format(support.program, script, arguments)
end

local function workers(count, engine, arguments, environment)
  return ("%s timeout -k 5 60 %q launch --workers %d --threads 1 --engine %s %q -- --engine %s %s"):format(environment or "",
    support.program, count, engine:lower(), script, engine, arguments)
end

-- What a run printed, in parts.
local function train(command)
  local text, code = support.run(command)
  assert.equal(0, code, text)
  local run = { text = text, steps = {}, epochs = {}, weights = {} }
  for line in text:gmatch("[^\n]+") do
    line = line:gsub("^%[[^%]]*%] *", "")                    -- the launcher puts the task before it
    local step, epoch, weights = line:match("^step (%S+)$"), line:match("^epoch %d+ (counted .*)$"), line:match("^weights (%x+) ")
    if step then run.steps[#run.steps + 1] = tonumber(step) end
    if epoch then run.epochs[#run.epochs + 1] = epoch end
    if weights then run.weights[#run.weights + 1] = weights end
    run.validation = tonumber(line:match("^validation (%S+)$")) or run.validation
    local samples, sum = line:match("^samples (%d+) sum (%d+)$")
    if samples then run.samples, run.sum = samples, sum end
  end
  return run
end

-- count: processes that took part.
local function check(run, one, count)
  assert.equal(20, #run.steps, run.text)
  for i, loss in ipairs(one.steps) do
    assert.truthy(math.abs(run.steps[i] - loss) < 1e-5 * math.max(1, math.abs(loss)),
      ("step %d: loss %.9f, of one replica %.9f\n%s"):format(i, run.steps[i], loss, run.text))
  end
  assert.equal(5, #run.epochs, run.text)
  for _, epoch in ipairs(run.epochs) do assert.equal(("counted %s sum %s"):format(one.samples, one.sum), epoch) end
  assert.truthy(math.abs(run.validation - one.validation) < 1e-5, run.text)
  assert.equal(count, #run.weights, run.text)
  for _, weights in ipairs(run.weights) do assert.equal(run.weights[1], weights, run.text) end
end

describe("training on several replicas", function()
  local single = {}

  -- The run of one replica that others are compared with.
  local function one(arguments)
    single[arguments] = single[arguments] or train(alone(arguments))
    return single[arguments]
  end

  it("counts what one replica uses", function() check(one "", one "", 1) end)

  for _, devices in ipairs { 2, 4 } do
    it(("in a process is that of one: %d devices"):format(devices), function()
      for _, arguments in ipairs { "", "--data tensors --last 5" } do
        check(train(alone(("--devices %d %s"):format(devices, arguments))), one(arguments), 1)
      end
    end)
  end

  -- 5 samples are 2, 2, 1 and none for 4 workers.
  local cases = {
    { 2, "RING", "" }, { 3, "RING", "" }, { 4, "RING", "--last 5" }, { 2, "RING", "--data tensors", "FLOW_SHARED_MEMORY=0" },
    { 2, "MPI", "" }, { 3, "MPI", "--data tensors" }, { 4, "MPI", "--last 5" }, { 3, "MPI", "", "FLOW_SHARED_MEMORY=0" },
  }
  for _, case in ipairs(cases) do
    local count, engine, arguments, environment = unpack(case)
    it(("by %d workers is that of one: %s %s %s"):format(count, engine, arguments, environment or ""), function()
      if MISSING[engine] then return pending(MISSING[engine]) end
      check(train(workers(count, engine, arguments, environment)), one(arguments), count)
    end)
  end
end)

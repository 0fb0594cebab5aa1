--- Runs of spec/dist/training.lua on one replica and on several, and how they are compared.
local assert = require "luassert"
local support = require "spec.support.init"

local runs = {}
local script = support.root .. "spec/dist/training.lua"

--- The command of a run in one process. environment: "NAME=value ...", or nil.
function runs.alone(arguments, environment)
  return ("%s timeout -k 5 60 %q %q %s"):format(environment or "", support.program, script, arguments)
end

function runs.workers(count, engine, arguments, environment)
  local meet = engine == "MPI" and "mpi" or "ring"
  return ("%s timeout -k 5 60 %q launch --workers %d --threads 1 --engine %s %q -- --engine %s %s"):format(environment or "",
    support.program, count, meet, script, engine, arguments)
end

--- What a run printed, in parts.
function runs.train(command)
  local text, code = support.run(command)
  assert.equal(0, code, text)
  local run = { text = text, steps = {}, epochs = {}, weights = {}, shared = {}, scales = {} }
  for line in text:gmatch("[^\n]+") do
    line = line:gsub("^%[[^%]]*%] *", "")                    -- the launcher puts the task before it
    local step, epoch = line:match("^step (%S+)$"), line:match("^epoch %d+ (counted .*)$")
    local weights, shared = line:match("^weights (%x+) of worker %d+, (%d+) shared$")
    if step then run.steps[#run.steps + 1] = tonumber(step) end
    if epoch then run.epochs[#run.epochs + 1] = epoch end
    if weights then run.weights[#run.weights + 1], run.shared[#run.shared + 1] = weights, tonumber(shared) end
    run.scales[#run.scales + 1] = line:match("^scale (.*)$")
    run.validation = tonumber(line:match("^validation (%S+)$")) or run.validation
    local samples, sum = line:match("^samples (%d+) sum (%d+)$")
    if samples then run.samples, run.sum = samples, sum end
  end
  return run
end

local single = {}

--- The run of one replica on the CPU with which others are compared.
function runs.one(arguments)
  single[arguments] = single[arguments] or runs.train(runs.alone(arguments))
  return single[arguments]
end

--- count: processes that took part.
function runs.check(run, one, count)
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
  assert.equal(#one.scales * count, #run.scales, run.text)
  for _, scale in ipairs(run.scales) do assert.equal(one.scales[1], scale, run.text) end
end

return runs

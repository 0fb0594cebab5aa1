--- Every layer against Keras: output, gradients of inputs and weights, statistics. Once eagerly, once as a traced function.
local flow = require "flow"
local native = require "flow.ffi"
local golden = require "spec.support.golden"
local precision = require "spec.support.precision"
local model_files = require "spec.support.model_files"

local C = native.C
local FORWARD, GRADIENT = 1e-5, 1e-4
-- What Keras computes in float64 is stored in float32. These layers compute in float32 there or here.
local function is_narrow(layer) return not layer:find "^Random" and layer ~= "MelSpectrogram" end

--- Output and gradients, in the order of the case's results.
local function compute(case, model, several, variables, upstream)
  local sources = {}
  for i, variable in ipairs(variables) do
    if not case.inputs[i].classes then sources[#sources + 1] = variable end      -- indices have no gradient
  end
  for _, variable in ipairs(model.trainable_variables) do sources[#sources + 1] = variable end
  local tape = flow.GradientTape()
  local output
  local target = tape:record(function()
    local x = {}
    for i, variable in ipairs(variables) do x[i] = variable:value() end
    output = model(several and x or x[1], { training = case.training })
    return (output * upstream):sum()
  end)
  local gradients = tape:gradient(target, sources)
  for i, source in ipairs(sources) do gradients[i] = gradients[i] or flow.zeros_like(source) end      -- what the output does not depend on
  return { output, unpack(gradients, 1, #sources) }
end

local function check(case, model, results, narrow)
  for i, where in ipairs(case.results) do
    if where.name:match("^state") then break end
    golden.check(case.family, where, results[i], narrow or i == 1 and FORWARD or GRADIENT)
  end
  if case.training then
    local states = model.non_trainable_variables
    for i, state in ipairs(states) do
      golden.check(case.family, case.results[#case.results - #states + i], state:value(), narrow or FORWARD)
    end
  end
end

it("every layer that has a record has a case", function()
  local has, missing = {}, {}
  for _, case in ipairs(golden.manifest.layers) do has[case.layer] = true end
  for index = 0, C.flow_layer_class_count() - 1 do
    local name = native.string(C.flow_layer_class_name(index))
    if not has[name] and name ~= "InputLayer" then missing[#missing + 1] = name end
  end
  assert.same({}, missing)
end)

describe("layers as in Keras:", function()
  for _, case in ipairs(golden.manifest.layers) do
    for _, mode in ipairs { "eager", "traced", "traced, exact" } do
      it(case.name .. ", " .. mode, function()
        flow.config.set_precision(mode:find("exact") and "exact" or precision.default)
        finally(function() flow.config.set_precision(precision.default) end)
        local model, several = golden.layer_model(case), #case.inputs > 1
        local variables = {}
        for i, entry in ipairs(case.inputs) do variables[i] = flow.Variable(golden.make(entry)) end
        local upstream = golden.make(case.upstream)
        local run = function() return unpack(compute(case, model, several, variables, upstream)) end
        if mode ~= "eager" then run = flow.fn(run) end
        check(case, model, { run() })
      end)
    end
    for _, mode in ipairs { "eager", "traced" } do
      it(case.name .. ", in float64, " .. mode, function()
        flow.mixed_precision.set_global_policy "float64"
        finally(function() flow.mixed_precision.set_global_policy "float32" end)
        local model, several = golden.layer_model(case), #case.inputs > 1
        local variables = {}
        for i, entry in ipairs(case.inputs) do variables[i] = flow.Variable(golden.make(entry)) end
        for _, v in ipairs(model.trainable_variables) do assert.equal("float64", v.dtype, v.path) end
        local upstream = golden.make(case.upstream)
        local run = function() return unpack(compute(case, model, several, variables, upstream)) end
        if mode == "traced" then run = flow.fn(run) end
        local results = { run() }
        assert.equal("float64", results[1].dtype)
        check(case, model, results, is_narrow(case.layer) and 3e-7 or nil)
      end)
    end
    it(case.name .. ", after it was written and read back", function()
      model_files.assert_returns(golden.layer_model(case), golden.make_all(case.inputs), { in_c = not flow.layers._in_lua(case.layer) })
    end)
  end
end)

describe("the formula of the inputs", function()
  it("gives what generate.py gives", function()
    local values = golden.make({ shape = { 3 }, seed = 1, low = 0, high = 1 }):totable()
    for i, expected in ipairs { 0.096076289191842079, 0.92846456007100642, 0.27769014867953956 } do
      assert.is_near(expected, values[i], 1e-7)
    end
  end)
  it("gives labels of every class", function()
    local seen = {}
    for _, label in ipairs(golden.make({ shape = { 200 }, seed = 9, classes = 10 }):totable()) do seen[label] = true end
    for label = 0, 9 do assert.is_true(seen[label]) end
  end)
end)

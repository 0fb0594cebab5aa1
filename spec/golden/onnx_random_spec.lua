--- Random models, of layers with random options and of operations on symbolic tensors (spec/support/random_files.lua), in ONNX Runtime: it
-- gives what predict gives, or export says which op or layer has no form in ONNX. FLOW_CASES=10000 tries more. Runs where $FLOW_PYTHON, or
-- python3, has onnx and onnxruntime (pip install onnx onnxruntime).
local support = require "spec.support.init"
local flow = require "flow"
local object = require "flow.object"
local model_files = require "spec.support.model_files"
local random_files = require "spec.support.random_files"

local FIRST, LAST, CASES = (require "spec.support.case_numbers")(100)
local TOLERANCE = 1e-5
local python = os.getenv("FLOW_PYTHON") or "python3"
local _, missing = support.run(python .. " -c 'import onnx, onnxruntime'")

local predicted = model_files.predicted

local function is_finite(value) return value == value and math.abs(value) < math.huge end

--- The largest difference of two predictions, as onnx_check.py measures it.
local function distance(a, b)
  local worst = 0
  for i = 1, #a do
    local x, y = a[i]:to("float64"):reshape({ -1 }):totable(), b[i]:to("float64"):reshape({ -1 }):totable()
    local largest, difference = 1, 0
    for j = 1, #x do
      if is_finite(x[j]) and is_finite(y[j]) then
        largest, difference = math.max(largest, math.abs(x[j])), math.max(difference, math.abs(x[j] - y[j]))
      elseif x[j] ~= y[j] and (x[j] == x[j] or y[j] == y[j]) then
        return math.huge
      end
    end
    worst = math.max(worst, difference / largest)
  end
  return worst
end

local function overflows(outputs)
  for _, t in ipairs(outputs) do
    local values = t:to("float64")
    if not is_finite(values:sum():item()) or values:abs():max():item() > 1e30 then return true end
  end
  return false
end

--- Whether float32 settles a model's predictions as well as the difference asks for: they do not overflow, and move less where inputs
--- and weights are another rounding away.
local function settles(make, seed, difference)
  local model, inputs = make(seed)
  local outputs, moved = predicted(model, inputs), 0
  if overflows(outputs) then return false end
  local function nudged(t, round)
    if not t.dtype:find "float" then return t end
    local signs = flow.random.uniform(t.shape, { seed = seed * 10 + round }):to("float64") - 0.5
    return (t:to("float64") * (signs:sign() * 2 ^ -23 + 1)):to(t.dtype)
  end
  for round = 1, 4 do
    local near = {}
    for i, t in ipairs(inputs) do near[i] = nudged(t, round) end
    moved = math.max(moved, distance(outputs, predicted(model, near)))
  end
  for _, v in ipairs(model.weights) do v:assign(nudged(v:value(), 5)) end
  moved = math.max(moved, distance(outputs, predicted(model, inputs)))
  return moved * 4 < difference
end

--- Whether a message names an op, or one of the model's layers, those of models inside it too.
local function names_a_layer(model, problem)
  if problem:find "the op %S+ has no ONNX form" then return true end
  for _, layer in ipairs(model.layers) do
    if problem:find(layer.name, 1, true) or object.has(layer, "layers") and names_a_layer(layer, problem) then return true end
  end
  return false
end

--- Exports one model with its inputs and predictions; the message where it has no form in ONNX, or why it cannot be tried.
local function export(make, seed, stem)
  local model, inputs, what = make(seed)
  local outputs = predicted(model, inputs)
  local ok, problem = pcall(model.export, model, stem .. ".onnx")
  if not ok then
    problem = tostring(problem)
    assert(names_a_layer(model, problem), ("seed %d, %s: the error names no op and no layer: %s"):format(seed, what, problem))
    return what, problem
  end
  for _, t in ipairs(outputs) do
    if t.dtype == "bfloat16" then      -- NumPy, and so the checking script, has none
      os.remove(stem .. ".onnx")
      return what, "bfloat16"
    end
  end
  for i, t in ipairs(inputs) do flow.save_npy(("%s.x%d.npy"):format(stem, i), t) end
  for i, t in ipairs(outputs) do flow.save_npy(("%s.y%d.npy"):format(stem, i), t) end
  return what
end

describe("ONNX Runtime gives what predict gives:", function()
  if missing ~= 0 then
    pending("not tested: " .. python .. " has no onnx and onnxruntime; name one that has in FLOW_PYTHON")
    return
  end
  for _, kind in ipairs { "model", "operations" } do
    it("random " .. (kind == "model" and "models" or kind), function()
      local folder, whats, refused, found, open = support.path(), {}, 0, {}, 0
      flow.io.makedirs(folder)
      for seed = FIRST, LAST do
        local problem
        whats[seed], problem = export(random_files[kind], seed, ("%s/%06d"):format(folder, seed))
        if problem then refused = refused + 1 end
        if os.getenv("FLOW_VERBOSE") and problem then print(seed, whats[seed], problem) end
        if seed % 50 == 0 then collectgarbage() end
      end
      local output, failed = support.run(("%s %sspec/golden/onnx_check.py %s"):format(python, support.root, folder)), {}
      for seed, result in output:gmatch("(%d+)\t([^\n]*)\n") do
        found[#found + 1] = seed
        local difference = tonumber(result)
        local differs = difference and difference > TOLERANCE
        if result == "undefined" or result == "rounding" or differs and not settles(random_files[kind], tonumber(seed), difference) then
          open = open + 1
        elseif not (difference and difference <= TOLERANCE) then
          failed[#failed + 1] = ("seed %d, %s: %s"):format(seed, whats[tonumber(seed)], result)
        end
      end
      flow.io.rmtree(folder)
      assert.equal("", table.concat(failed, "\n"))
      assert.equal(CASES, #found + refused, output)
      assert.truthy(open <= 1 + CASES / 500, ("%d of %d are not settled"):format(open, CASES))
      assert.truthy(CASES < 20 or #found > CASES / 2, ("only %d of %d have a form in ONNX"):format(#found, CASES))
    end)
  end
end)

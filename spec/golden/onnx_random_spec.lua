--- Random models, of layers with random options and of operations on symbolic tensors (spec/support/random_files.lua), in ONNX Runtime: it
-- gives what predict gives, or export says which op or layer has no form in ONNX. FLOW_CASES=10000 tries more. Runs where $FLOW_PYTHON, or
-- python3, has onnx and onnxruntime (pip install onnx onnxruntime).
local support = require "spec.support.init"
local flow = require "flow"
local object = require "flow.object"
local random_files = require "spec.support.random_files"

local CASES = tonumber(os.getenv("FLOW_CASES")) or 100
local TOLERANCE = 1e-5
local python = os.getenv("FLOW_PYTHON") or "python3"
local _, missing = support.run(python .. " -c 'import onnx, onnxruntime'")

local function list_of(outputs) return flow.is_tensor(outputs) and { outputs } or outputs end

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
  local outputs = list_of(model:predict(#inputs == 1 and inputs[1] or inputs, { verbose = 0 }))
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
      local folder, whats, refused, found = os.tmpname(), {}, 0, {}
      os.remove(folder)
      flow.io.makedirs(folder)
      for seed = 1, CASES do
        local problem
        whats[seed], problem = export(random_files[kind], seed, ("%s/%06d"):format(folder, seed))
        if problem then refused = refused + 1 end
        if os.getenv("FLOW_VERBOSE") and problem then print(seed, whats[seed], problem) end
        if seed % 50 == 0 then collectgarbage() end
      end
      local output, failed = support.run(("%s %sspec/golden/onnx_check.py %s"):format(python, support.root, folder)), {}
      for seed, result in output:gmatch("(%d+)\t([^\n]*)\n") do
        found[#found + 1] = seed
        if not (tonumber(result) and tonumber(result) <= TOLERANCE) then
          failed[#failed + 1] = ("seed %d, %s: %s"):format(seed, whats[tonumber(seed)], result)
        end
      end
      flow.io.rmtree(folder)
      assert.equal("", table.concat(failed, "\n"))
      assert.equal(CASES, #found + refused, output)
      assert.truthy(#found > CASES / 2, ("only %d of %d have a form in ONNX"):format(#found, CASES))
    end)
  end
end)

-- shared.lua: flow.models.shared(path): the model of a file, of which the process has one for all Lua states that ask for it: a server with
-- a state in each of eight threads holds its weights once. It predicts and does nothing else; flow.load_model gives a model for one
-- caller, which trains. Several threads may predict at the same time.
--
--   local model = flow.models.shared "digits.keras"
--   print(model:predict(images).shape[1])
--   model:close()                                  -- the last one who closes it frees the weights

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local signature = require "flow.signature"
local view_rows = require "flow.tensor.rows"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context
local takes = signature.takes

local SharedModel = object.class("SharedModel", nil, "model")
local out = native.out("flow_model")

-- The handle; raises if the model was closed.
local function handle_of(self)
  return self._handle or raise("SharedModel %q was closed: open it again with flow.models.shared", self.path)
end

local function input_of(x) return native.is_tensor(x) and x or tensor.tensor(x) end

-- Of the file that is at this path now: one that was replaced is another model. Layers written in Lua need flow.load_model.
local function shared(path)
  if type(path) ~= "string" or not path:find("%.keras$") then
    raise("models.shared takes the path of a .keras file, got %s", errors.describe(path))
  end
  path = require("flow.io").path(path)
  check(C.flow_model_share(context, path, out))
  return object.new(SharedModel, { path = path, _handle = native.own(out, C.flow_model_release) })
end

-- The inputs of the model: x, or the entries of the list x.
local function inputs_of(self, handle, x)
  local count, inputs = C.flow_model_input_count(handle), {}
  if count == 1 then return { input_of(x) } end
  if type(x) ~= "table" or #x ~= count then
    raise("predict: %s has %d inputs: predict takes a list of as many tensors, got %s", self.path, count, errors.describe(x))
  end
  for i = 1, count do inputs[i] = input_of(x[i]) end
  return inputs
end

-- A list of the outputs.
local function outputs_of(handle, inputs)
  local count = C.flow_model_output_count(handle)
  local outputs, results = native.out("flow_tensor", count), {}
  check(C.flow_model_predict(context, handle, native.pointers(inputs), #inputs, outputs))
  for i = 1, count do results[i] = native.tensor(outputs[i - 1]) end
  return results
end

-- The same, of at most `size` rows at a time.
local function in_batches(handle, inputs, size)
  local rows, parts = #inputs[1].shape > 0 and inputs[1].shape[1] or 1, {}
  for i = 2, #inputs do
    if inputs[i].shape[1] ~= rows then return outputs_of(handle, inputs) end      -- which says what is wrong
  end
  if rows <= size then return outputs_of(handle, inputs) end
  for first = 0, rows - 1, size do
    local views = {}
    for i, input in ipairs(inputs) do views[i] = view_rows(input:contiguous(), first, math.min(size, rows - first)) end
    for i, output in ipairs(outputs_of(handle, views)) do
      parts[i] = parts[i] or {}
      table.insert(parts[i], output)
    end
  end
  for i, list in ipairs(parts) do parts[i] = ops.concat(list, 1) end
  return parts
end

-- Any number of rows: a tensor or nested lists, or a list of these for several inputs. Returns a tensor, or a list of them for several
-- outputs. Without batch_size all rows are one batch. verbose: taken as other models take it; servers draw no bars.
takes "x, { batch_size?: count, verbose: verbosity = 'auto' }"
function SharedModel:predict(x, options)
  local handle = handle_of(self)
  local results = in_batches(handle, inputs_of(self, handle, x), options.batch_size or math.huge)
  return #results == 1 and results[1] or results
end

takes "x"
function SharedModel:predict_on_batch(x) return self:predict(x) end

-- model(x), which may say that it is not trained: as a layer is called.
function SharedModel:_call(x, options)
  if type(options) == "table" and options.training then raise("a SharedModel predicts; flow.load_model gives one that trains") end
  return self:predict(x)
end

-- Gives its weights back unless others use them. The collector does it, too.
takes ""
function SharedModel:close()
  if not self._handle then return end
  native.close(self._handle, C.flow_model_release)
  rawset(self, "_handle", false)
end

return shared

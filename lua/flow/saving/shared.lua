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
local signature = require "flow.signature"

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

-- Any number of rows: a tensor or nested lists, or a list of these for several inputs. Returns a tensor, or a list of them for several
-- outputs.
takes "x"
function SharedModel:predict(x)
  local handle = handle_of(self)
  local count, outputs = C.flow_model_input_count(handle), native.out("flow_tensor", C.flow_model_output_count(handle))
  local inputs = {}
  if count == 1 then
    inputs[1] = input_of(x)
  else
    if type(x) ~= "table" or #x ~= count then
      raise("predict: %s has %d inputs: predict takes a list of as many tensors, got %s", self.path, count, errors.describe(x))
    end
    for i = 1, count do inputs[i] = input_of(x[i]) end
  end
  check(C.flow_model_predict(context, handle, native.pointers(inputs), count, outputs))
  local results = {}
  for i = 1, C.flow_model_output_count(handle) do results[i] = native.tensor(outputs[i - 1]) end
  return #results == 1 and results[1] or results
end

-- Gives its weights back unless others use them. The collector does it, too.
takes ""
function SharedModel:close()
  if not self._handle then return end
  native.close(self._handle, C.flow_model_release)
  rawset(self, "_handle", false)
end

return shared

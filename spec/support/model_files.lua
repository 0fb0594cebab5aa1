--- What is written is read back: a model goes into a .keras file and is read by Lua, by C, and by Lua again from the file that C writes.
local ffi = require "ffi"
local flow = require "flow"
local native = require "flow.ffi"
local tensor_file = require "flow.saving.tensor_file"
local luassert = require "luassert"
local support = require "spec.support.init"

pcall(ffi.cdef, "int memcmp(const void *a, const void *b, size_t bytes);")

local C, check = native.C, native.check
local files = {}
local path

--- One temporary file for all models; the next one replaces it.
local function temporary()
  path = path or support.file("model.keras", "")
  return path
end

-- The tensors of a list, also of those in lists in it, in their order.
local function flattened(list, found)
  found = found or {}
  for _, entry in ipairs(list) do
    if type(entry) == "table" then flattened(entry, found) else found[#found + 1] = entry end
  end
  return found
end

--- What a model predicts for a list of inputs, as one list, also where its outputs are nested.
function files.predicted(model, inputs)
  return flattened { model:predict(#inputs == 1 and inputs[1] or inputs, { verbose = 0 }) }
end

--- What flow_model_predict gives for a file, as a list, and what flow_model_save writes then if `copy` is a path.
function files.predict_in_c(file, inputs, copy)
  local out = native.out("flow_model")
  native.try(C.flow_model_load, native.context, file, out)
  local model = native.own(out, C.flow_model_release)
  local count = C.flow_model_output_count(model)
  local outputs = native.out("flow_tensor", count)
  local pointers, inputs_count = native.pointers(inputs)
  native.try(C.flow_model_predict, native.context, model, pointers, inputs_count, outputs)      -- collects, where memory is out
  local list = {}
  for i = 1, count do list[i] = native.tensor(outputs[i - 1]) end
  if copy then check(C.flow_model_save(model, copy)) end
  native.close(model, C.flow_model_release)
  return list
end

--- Fails with the place where two texts begin to differ.
function files.assert_same_text(expected, actual, what)
  if expected == actual then return end
  local at = 1
  while expected:byte(at) == actual:byte(at) do at = at + 1 end
  local from = math.max(1, at - 150)
  error(("%s: expected ...%s..., found ...%s..."):format(what, expected:sub(from, at + 60), actual:sub(from, at + 60)), 2)
end

--- Fails unless both lists of tensors, or of lists of them, have the same shapes, dtypes and bits.
function files.assert_same_bits(expected, actual, what)
  expected, actual = flattened(expected), flattened(actual)
  luassert.equal(#expected, #actual, what)
  for i, a in ipairs(expected) do
    local b = actual[i]
    luassert.equal(a.dtype, b.dtype, what)
    luassert.same(a.shape, b.shape, what)
    a, b = a:reshape { -1 }, b:reshape { -1 }
    local bytes = a.size * C.flow_dtype_size(native.dtype(a.dtype))
    if a.size > 0 and ffi.C.memcmp(a:data(), b:data(), bytes) ~= 0 then
      error(("%s: output %d differs, by up to %g"):format(what, i, (a:to("float32") - b:to("float32")):abs():max():item()), 2)
    end
  end
end

-- Each group, note and tensor of a file's weights, in one order.
local function contents(file)
  local weights, list = tensor_file.open(file, "model.weights.h5"), {}
  for _, group in ipairs(weights:groups()) do list[#list + 1] = "group " .. group end
  for _, note in ipairs(weights:notes()) do
    list[#list + 1] = ("note %s.%s = %s"):format(note.path, note.key, weights:note(note.path, note.key))
  end
  for i = 1, weights.count do
    list[#list + 1] = ("tensor %s {%s}"):format(weights:name_of(i), table.concat(weights:shape(i), ", "))
  end
  weights:close()
  table.sort(list)
  return table.concat(list, "\n")
end

--- Saves the model and fails unless every reader gives it back: the same description, the same predictions to the last bit.
--- options: custom_objects for Lua; in_c = false: the file holds what C does not read.
function files.assert_returns(model, inputs, options)
  options = options or {}
  local file = temporary()
  local description = model:to_json()
  local before = files.predicted(model, inputs)
  model:save(file)
  local again = flow.load_model(file, { custom_objects = options.custom_objects })
  files.assert_same_text(description, again:to_json(), "the description, read by Lua")
  files.assert_same_bits(before, files.predicted(again, inputs), "read by Lua")
  if options.in_c == false then return again end
  files.assert_same_bits(before, files.predict_in_c(file, inputs, file .. ".c.keras"), "read by C")
  files.assert_same_text(contents(file), contents(file .. ".c.keras"), "the weights, written by C")
  local copied = flow.load_model(file .. ".c.keras")
  files.assert_same_text(description, copied:to_json(), "the description, written by C")
  files.assert_same_bits(before, files.predicted(copied, inputs), "written by C")
  return again
end

return files

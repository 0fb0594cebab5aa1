-- tensor_file.lua: files of named tensors (flow.h, "files of named tensors") as Lua objects, and flow.save_safetensors and
-- flow.load_safetensors on top of them.
--
--   local writer = tensor_file.writer()
--   writer:checksums(true)                                safetensors only
--   writer:group("layers/dropout")                        hdf5: an empty group stays
--   writer:add("layers/dense/vars/0", tensor or variable) its content counts when the file is saved, or at the snapshot
--   writer:note("", "format", "flowlua")                  path, key, text
--   writer:snapshot()
--   writer:save(path, "safetensors" or "hdf5")
--
--   local file = tensor_file.open(path [, member of a zip [, { trusted = true }]])   trusted: other HDF5 layouts, by libhdf5
--   file.count, file:name_of(1), file:dtype(1), file:shape(1), file:find(name) -> position or nil
--   file:read(1 or name) -> tensor;  file:read_into(1 or name, tensor or variable)
--   file:note(path, key) -> text or nil;  file:notes() -> { { path =, key = }, ... };  file:groups() -> { path, ... }
--   file:verify()                                         raises if a checksum is wrong;  file:close()
--
-- Positions count from 1 here, from 0 in flow.h.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local variable = require "flow.tensor.variable"

local C, check, raise = native.C, native.check, errors.raise

local tensor_file = {}

local writer_out, file_out, tensor_out = native.out("flow_tensor_writer"), native.out("flow_tensor_file"), native.out("flow_tensor")

-- The tensor whose memory is the variable's own, to be read.
local function storage(value)
  if not variable.is_variable(value) then return value end
  check(C.flow_variable_peek(value.handle, tensor_out))
  return native.tensor(tensor_out[0])
end

-- Returns a text that C can take; raises for anything else.
local function check_text(what, value)
  if type(value) ~= "string" or value:find("\0", 1, true) then
    raise("%s is a string without NUL, got %s", what, errors.describe(value))
  end
  return value
end

---- writing -----------------------------------------------------------------------------------------------------------------

local Writer = object.hide(object.class("TensorWriter"))

function tensor_file.writer()
  check(C.flow_tensor_writer_new(writer_out))
  return object.new(Writer, { _handle = native.own(writer_out, C.flow_tensor_writer_release) })
end

function Writer:checksums(on)
  check(C.flow_tensor_writer_checksums(self._handle, on and 1 or 0))
end

function Writer:group(path)
  check(C.flow_tensor_writer_group(self._handle, check_text("the path of a group", path)))
end

function Writer:add(name, value)
  check_text("the name of a tensor", name)
  local tensor = storage(value)
  check(C.flow_tensor_writer_add(self._handle, name, native.pointer(tensor)))
end

function Writer:note(path, key, text)
  check(C.flow_tensor_writer_note(self._handle, check_text("the path of a note", path), check_text("the key of a note", key),
    check_text("the text of a note", text)))
end

function Writer:snapshot()
  native.try(C.flow_tensor_writer_snapshot, self._handle)
end

function Writer:save(path, format)
  check(C.flow_tensor_writer_save(self._handle, check_text("the path of a file", path), format))
end

-- Frees the snapshot's memory now; the collector does it, too.
function Writer:close()
  if not self._handle then return end
  native.close(self._handle, C.flow_tensor_writer_release)
  self._handle = false
end

---- reading -----------------------------------------------------------------------------------------------------------------

local File = object.hide(object.class("TensorFile"))

-- Opens a file, or a member of a zip, and checks its index; contents are read later. Raises if it is damaged or of another format.
function tensor_file.open(path, member, options)
  local open = options and options.trusted and C.flow_tensor_file_open_trusted or C.flow_tensor_file_open
  check(open(check_text("the path of a file", path), member, file_out))
  local handle = native.own(file_out, C.flow_tensor_file_release)
  return object.new(File, { _handle = handle, path = path, count = C.flow_tensor_file_count(handle) })
end

function File:close()
  if not self._handle then return end
  native.close(self._handle, C.flow_tensor_file_release)
  self._handle = false
end

local function handle_of(self)
  return self._handle or raise("the file %s was closed", self.path)
end

-- The position from 0 of a position from 1 or a name.
local function index_of(self, which)
  if type(which) == "number" then return which - 1 end
  local index = C.flow_tensor_file_find(handle_of(self), check_text("the name of a tensor", which))
  if index >= 0 then return index end
  local names = {}
  for i = 1, math.min(self.count, 1000) do names[i] = self:name_of(i) end
  raise("%s has no tensor %q%s", self.path, which, errors.suggestion(which, names))
end

local function text_or_nil(pointer)
  return pointer ~= nil and native.string(pointer) or nil
end

function File:name_of(position)
  return text_or_nil(C.flow_tensor_file_name(handle_of(self), position - 1))
end

-- The position of a tensor from 1, or nil.
function File:find(name)
  local index = C.flow_tensor_file_find(handle_of(self), check_text("the name of a tensor", name))
  return index >= 0 and index + 1 or nil
end

function File:dtype(which)
  return native.dtype_names[C.flow_tensor_file_dtype(handle_of(self), index_of(self, which))]
end

function File:shape(which)
  local handle, index, shape = handle_of(self), index_of(self, which), {}
  for axis = 1, C.flow_tensor_file_rank(handle, index) do shape[axis] = C.flow_tensor_file_dim(handle, index, axis - 1) end
  return shape
end

function File:has_checksum(which)
  return C.flow_tensor_file_has_checksum(handle_of(self), index_of(self, which)) ~= 0
end

-- A new tensor on the host.
function File:read(which)
  local handle, index = handle_of(self), index_of(self, which)
  native.try(C.flow_tensor_file_read, handle, index, tensor_out)
  return native.tensor(tensor_out[0])
end

-- Into a tensor, or into a variable, whose version grows with it.
function File:read_into(which, value)
  local handle, index = handle_of(self), index_of(self, which)
  if variable.is_variable(value) then
    local content = self:read(which)
    value:assign(content)
    content:close()                   -- as large as the variable: not left to the collector
  else
    check(C.flow_tensor_file_read_into(handle, index, native.pointer(value)))
  end
end

function File:note(path, key)
  return text_or_nil(C.flow_tensor_file_note_text(handle_of(self), path, key))
end

function File:notes()
  local handle, list = handle_of(self), {}
  for i = 0, C.flow_tensor_file_note_count(handle) - 1 do
    local path, key = C.flow_tensor_file_note_path(handle, i), C.flow_tensor_file_note_key(handle, i)
    list[i + 1] = { path = native.string(path), key = native.string(key) }
  end
  return list
end

function File:groups()
  local handle, list = handle_of(self), {}
  for i = 0, C.flow_tensor_file_group_count(handle) - 1 do list[i + 1] = native.string(C.flow_tensor_file_group_name(handle, i)) end
  return list
end

function File:verify()
  check(C.flow_tensor_file_verify(handle_of(self)))
end

return tensor_file

-- memory.lua: tensors over memory that others own, arrays in files, and memory that is given back: flow.frombuffer, save_npy, load_npy,
-- save_npz, load_npz, tidy. Loaded by init.lua when the first of these is asked for.

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local signature = require "flow.signature"

local takes = signature.takes
local C, check, raise = native.C, native.check, errors.raise
local is_tensor = native.is_tensor
local one = native.out("flow_tensor")

---- memory that nobody needs ------------------------------------------------------------------------------------------------

-- Calls f and releases at once every tensor that became garbage meanwhile; returns f's results.
takes("f: callable, arguments...", true)
function tensor.tidy(f, ...)
  signature.check_callable("flow.tidy", f)
  local function finish(...)
    native.collect()
    return ...
  end
  return finish(f(...))
end

---- borrowed memory ----------------------------------------------------------------------------------------------------------

-- Memory lent by frombuffer stays anchored while any tensor, view, tape or plan still reads it: a second view of ours asks
-- the library for the number of holders. The list outlives reloads of this module; it is swept when more memory is lent
-- rather than by a finalizer, which would ask about tensors that are gone when a state closes.
local anchors = native.anchors

-- Lets go what a tensor's memory was kept for: an anchor whose keeper has no other owner than itself. The list is shortened in place, and
-- looked at again when it has twice as many entries as stayed.
local function sweep_anchors()
  local kept = 0
  for i = 1, #anchors do
    local anchor = anchors[i]
    anchors[i] = nil
    if C.flow_tensor_owners(anchor.keeper.p) > 1 then
      kept = kept + 1
      anchors[kept] = anchor
    else
      anchor.keeper:close()
    end
  end
  anchors.sweep_at = 2 * kept + 8
end

-- A tensor over the memory of a cdata array or pointer, without a copy; or of a string's bytes, which are copied, since strings never
-- change. offset: bytes to leave out at the beginning.
takes "memory, shape, dtype = 'float32', offset: whole = 0"
function tensor.frombuffer(memory, shape, dtype, offset)
  local text = type(memory) == "string"
  if not text and (type(memory) ~= "cdata" or is_tensor(memory)) then
    raise("flow.frombuffer: expected a string, a cdata array or a pointer, got %s", errors.describe(memory))
  end
  shape = tensor.check_dims("flow.frombuffer", shape)
  local number = native.dtype(dtype)
  local dims, rank = native.dims(shape)
  local own = text and #memory or select(2, require("flow.tensor.values.cdata_arrays").describe(memory)) and native.sizeof(memory)
  if own then
    local wanted = C.flow_dtype_size(number)
    for i = 1, rank do wanted = wanted * shape[i] end
    if offset + wanted > own then
      raise("flow.frombuffer: the shape takes %d bytes%s, the %s has %d", wanted, offset > 0 and (" from byte %d on"):format(offset) or "",
        text and "string" or "array", own)
    end
  end
  local first = native.cast(text and "const char *" or "char *", memory) + offset
  if text then      -- the tensor can be written to, a string cannot
    local copy = tensor.new(number, shape)
    native.copy(C.flow_tensor_data(copy.p), first, copy.size * C.flow_dtype_size(number))
    return copy
  end
  if tonumber(native.cast("intptr_t", first) % C.flow_dtype_size(number)) ~= 0 then
    raise("flow.frombuffer: %s elements begin at a multiple of %d bytes, this address is not one", native.dtype_names[number],
      C.flow_dtype_size(number))
  end
  check(C.flow_tensor_borrow(native.cast("void *", first), number, rank, dims, one))
  local t = native.tensor(one[0])
  local strides, stride = native.dims(shape), 1
  for i = rank - 1, 0, -1 do
    strides[i] = stride
    stride = stride * dims[i]
  end
  check(C.flow_tensor_view(t.p, rank, dims, strides, 0, one))
  if #anchors >= anchors.sweep_at then sweep_anchors() end
  anchors[#anchors + 1] = { memory = memory, keeper = native.tensor(one[0]) }
  return t
end

---- files ----------------------------------------------------------------------------------------------------------------------

local function check_path(what, path)
  return require("flow.io").path(path, what)
end

takes "path, tensor"
function tensor.save_npy(path, t)
  if is_tensor(path) then path, t = t, path end
  path = check_path("flow.save_npy", path)
  if not is_tensor(t) then t = tensor.tensor(t) end
  check(C.flow_tensor_save_npy(tensor.need_value(t, "flow.save_npy"), path))
end

takes "path"
function tensor.load_npy(path)
  native.try(C.flow_tensor_load_npy, check_path("flow.load_npy", path), one)
  return native.tensor(one[0])
end

local writer_out, archive_out = native.out "flow_archive_writer", native.out "flow_archive"

-- Writes a table of tensors, or of numbers and lists, by their names as an .npz archive, whole or not at all.
takes "path, arrays: table"
function tensor.save_npz(path, arrays)
  path = check_path("flow.save_npz", path)
  local names = {}
  for name in pairs(arrays) do
    if type(name) ~= "string" or name == "" then
      raise("flow.save_npz: arrays have names, flow.save_npz(path, { x = tensor }); got %s", errors.describe(name))
    end
    names[#names + 1] = require("flow.names").checked("flow.save_npz", name)
  end
  table.sort(names)
  check(C.flow_archive_writer_new(path, writer_out))
  local writer = native.own(writer_out, C.flow_archive_writer_release)
  for _, name in ipairs(names) do
    local t = arrays[name]
    if not is_tensor(t) then t = tensor.tensor(t) end
    check(C.flow_archive_writer_add_npy(writer, name .. ".npy", tensor.need_value(t, "flow.save_npz")))
  end
  check(C.flow_archive_writer_commit(writer))
  native.close(writer, C.flow_archive_writer_release)
end

local function load_member(path, member)
  native.try(C.flow_tensor_load_npz, path, member, one)
  return native.tensor(one[0])
end

-- One array of an .npz archive, member without ".npy"; without a member a table of all by their names.
takes "path, member?: string"
function tensor.load_npz(path, member)
  path = check_path("flow.load_npz", path)
  if member then return load_member(path, member) end
  check(C.flow_archive_open(path, archive_out))
  local archive, arrays = native.own(archive_out, C.flow_archive_release), {}
  for i = 0, C.flow_archive_count(archive) - 1 do
    native.try(C.flow_archive_npy, archive, i, one)
    arrays[native.string(C.flow_archive_name(archive, i)):gsub("%.npy$", "")] = native.tensor(one[0])
  end
  native.close(archive, C.flow_archive_release)
  return arrays
end

return tensor

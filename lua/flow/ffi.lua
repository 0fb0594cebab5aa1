-- ffi.lua: the only file that touches libflow by the FFI: it loads the library, declares flow.h and makes tensors Lua values.
--
-- How the other modules of lua/flow use it:
--
--   local native = require "flow.ffi"
--   local C, check, context = native.C, native.check, native.context
--
--   check(C.flow_variable_assign(context, handle, t.p))     a failed status is raised at the user's line
--   local out = native.out("flow_layer")                    a pointer to receive one handle
--   check(C.flow_layer_new("Dense", nil, arguments, out))
--   local handle = native.own(out, C.flow_layer_release)    released by the collector; nil'ed by native.close(handle)
--   local t = native.tensor(pointer)                        a Lua tensor that owns this new reference
--   native.pointer(t)                                       its flow_tensor *, borrowed; raises if t is closed or no tensor
--   local list = native.pointers { t1, t2 }                 flow_tensor *[2] (keep t1, t2 alive during the call)
--   local dims, rank = native.dims { 2, 3 }                 int64_t[8] and 2
--   native.text(C.flow_layer_config, handle)                calls f(handle, buffer, size) until all text fits; below 0: no memory
--   native.try(C.flow_tensor_new, ...)                      like check(f(...)), with one collection and retry when memory is out
--
-- A Lua tensor is a value struct of one pointer, because LuaJIT takes a[1] on a pointer for pointer arithmetic and because
-- a value struct with __gc costs one small allocation. Its methods, operators and fields are set by tensor/init.lua and tensor/ops.lua
-- in native.hooks and native.methods. What must exist once per Lua state (declarations, metatype, context) is kept in the
-- registry, since hosts and test runners unload and reload modules.
--
-- The room: errors, the library by FFI, objects, signatures, files, devices: what every room uses. May use: nothing.

local host = require "flow.host"
local ffi = require "ffi"
local errors = require "flow.errors"
local scopes = require "flow.scopes"

local native = { errors = errors }

local REGISTRY_KEY = "flowlua.state"
local registry = debug.getregistry()
local state = registry[REGISTRY_KEY]

---- the library -------------------------------------------------------------------------------------------------

local home = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or "./"

-- Candidates in order: the library that the host program already uses, the environment, a source tree or installation
-- around this file, LuaRocks, the system.
local function candidates()
  local list = {}
  local named = registry["flowlua.library"] or host.getenv("FLOWLUA_LIB")
  if named and named ~= "" then return { named } end
  for _, relative in ipairs { "../../build/lib/libflow.so.0", "../../../../lib/libflow.so.0", "../../../../lib64/libflow.so.0" } do
    if host.readable(home .. relative) then list[#list + 1] = home .. relative end
  end
  local rock = host.c_module("flow_native")
  if rock then list[#list + 1] = rock end
  list[#list + 1] = "libflow.so.0"
  list[#list + 1] = "flow"
  return list
end

-- The declaration of a function of flow.h; nil: there is none.
local function declaration(name)
  local all = require "flow.cdef.functions"
  local _, last = all:find(";" .. name .. "=", 1, true)
  return last and all:sub(last + 1, all:find(";", last, true) - 1)
end

-- A function is declared when it is first used; again, where a host loads this module once more.
local function declare(name) ffi.cdef(declaration(name) .. ";") end

-- What is called here, before native.C is there, or when tensors are released.
local function declare_own()
  for _, name in ipairs { "flow_abi_version", "flow_last_error", "flow_tensor_release", "flow_context_new", "flow_context_release",
                          "flow_scopes_new", "flow_scopes_enter", "flow_scopes_release", "flow_context_set_device" } do
    declare(name)
  end
end

-- The library and the path by which it was found. Raises if no candidate can be loaded, or if the first that can has another interface
-- version.
local function load_library()
  local tried = {}
  for _, path in ipairs(candidates()) do
    local ok, library = pcall(ffi.load, path)
    local is_ours, found = pcall(function() return library.flow_abi_version() end)
    if ok and is_ours then
      if found ~= ffi.C.FLOW_ABI_VERSION then
        errors.raise("%s has interface version %d, this flow module needs %d: install matching versions, or set FLOWLUA_LIB",
          path, found, ffi.C.FLOW_ABI_VERSION)
      end
      return library, path
    end
    tried[#tried + 1] = "  " .. (ok and path .. " is another library: " .. tostring(found) or tostring(library))
  end
  errors.raise("the flowlua library was not found: build it with scripts/setup or set FLOWLUA_LIB to libflow.so.0; tried\n%s",
    table.concat(tried, "\n"))
end

---- what exists once per Lua state --------------------------------------------------------------------------------

if not state then
  if not pcall(ffi.typeof, "flow_ref") then     -- left over when a first attempt found no library
    ffi.cdef(require("flow.cdef.types"))
    ffi.cdef "typedef struct { flow_tensor *p; } flow_ref;"      -- a Lua tensor: owns one reference
  end
  declare_own()
  local C, path = load_library()
  state = { C = C, path = path, scopes = scopes.new_state(), hooks = {}, anchors = { sweep_at = 8 } }

  local hooks = state.hooks
  state.ref = ffi.metatype("flow_ref", {
    __index = function(t, key) return hooks.index(t, key) end,
    __newindex = function(t, key, value) hooks.newindex(t, key, value) end,
    __len = function(t) return hooks.length(t) end,
    __ipairs = function(t) return hooks.each(t) end, __pairs = function(t) return hooks.each(t) end,
    __call = function(t, ...) return hooks.call(t, ...) end,
    __tostring = function(t) return hooks.tostring(t) end,
    __concat = function(a, b) return tostring(a) .. tostring(b) end,
    __eq = function(a, b) return hooks.same(a, b) end,
    __lt = function(a, b) return hooks.order(a, b) end,
    __le = function(a, b) return hooks.order(a, b) end,
    __unm = function(a) return hooks.neg(a) end,
    __add = function(a, b) return hooks.add(a, b) end,
    __sub = function(a, b) return hooks.sub(a, b) end,
    __mul = function(a, b) return hooks.mul(a, b) end,
    __div = function(a, b) return hooks.div(a, b) end,
    __pow = function(a, b) return hooks.pow(a, b) end,
    __mod = function(a, b) return hooks.mod(a, b) end,
    __gc = function(t) C.flow_tensor_release(t.p) end,
  })

  local out = ffi.new("flow_context *[1]")
  if C.flow_context_new(out) ~= 0 then errors.raise("%s", ffi.string(C.flow_last_error())) end
  state.context = out[0]
  -- A userdata's finalizer runs after those of all cdata when a state closes, so the context outlives its tensors and plans.
  state.sentinel = newproxy(true)
  local context = out[0]
  getmetatable(state.sentinel).__gc = function() C.flow_context_release(context) end
  registry[REGISTRY_KEY] = state
end

---- the library's functions -----------------------------------------------------------------------------------------

local C
do
  local library = state.C
  C = scopes.install(state.scopes, library, declaration, declare, state.context, function(when_lost)
    local out = ffi.new("flow_scopes *[1]")
    if library.flow_scopes_new(state.context, out) ~= 0 then errors.raise("%s", ffi.string(library.flow_last_error())) end
    return ffi.gc(out[0], function(handle)
      when_lost()
      library.flow_scopes_release(handle)
    end)
  end)
end
native.C = C
native.path = state.path
native.context = state.context
native.hooks = state.hooks
native.anchors = state.anchors      -- memory lent by flow.frombuffer: { memory =, keeper = }
native.methods, native.fields = {}, {}
native.late_methods = {}      -- by name: what makes a method when it is first asked for (tensor/define_op.lua)
native.new, native.cast, native.string, native.sizeof, native.typeof, native.gc, native.copy =
  ffi.new, ffi.cast, ffi.string, ffi.sizeof, ffi.typeof, ffi.gc, ffi.copy

-- Another library than libflow, such as "edit.so.2", with declarations of its functions; nil where it is not installed. Without a name:
-- functions as all libraries of the process meet them, such as free of the malloc in use, which need not be libc's.
function native.other_library(name, declarations)
  local declared = pcall(ffi.cdef, declarations)
  local ok, found = pcall(name and ffi.load or function() return ffi.C end, name)
  return declared and ok and found or nil
end

---- statuses ------------------------------------------------------------------------------------------------------

-- Raises what an interrupt ends something with. Which error that is is kept for the flowlua program, whose exit code it decides.
function native.raise_interrupted(text, ...)
  registry["flowlua.interruption"] = errors.text(text, ...)
  error(registry["flowlua.interruption"], 0)
end

-- Raises what a failed call said. An interrupt is cleared first, so that what handles the error can call the library again.
local function fail(status)
  local text = ffi.string(C.flow_last_error())
  if status == C.FLOW_INTERRUPTED then
    C.flow_interrupt(state.context, 0)
    native.raise_interrupted("%s", text ~= "" and text or "interrupted")
  end
  if status == C.FLOW_OUT_OF_MEMORY then errors.raise_passing(text) end
  errors.raise("%s", text)
end

-- A field of the last failure (C.FLOW_ERROR_ROW, ...), nil where it is not known. Ask before anything else is called.
function native.error_field(field)
  local value = C.flow_last_error_field(field)
  return value == value and value or nil
end

-- LuaJIT may collect an object after its last use in Lua, which can be before the call that reads its pointer. So native.pointer and
-- native.pointers keep what they are given until native.check or native.try sees the status of a call. A caller that fills an array by
-- hand, or passes texts or handles, keeps these alive itself, by native.keep or by using them after the call. Pointers are taken last,
-- after all that makes tensors: only the last KEPT objects are kept, of which a list counts as one.
local KEPT = 4
local kept, last_kept = {}, 0
function native.keep(object)
  last_kept = last_kept % KEPT + 1
  kept[last_kept] = object
end
local keep = native.keep

local function forget_kept()
  if kept[1] ~= nil then kept[1], kept[2], kept[3], kept[4], last_kept = nil, nil, nil, nil, 0 end
end

local deliver      -- what log.lua does after a call while somebody listens

-- f, or nil: called after calls, when C may have said something.
function native.listen(f) deliver = f end

-- Raises at the user's line unless the status of a call of the library is 0. Ends what native.keep holds.
function native.check(status)
  forget_kept()
  if status ~= 0 then fail(status) end
  if deliver then deliver() end
end

-- Calls f(...), a function of flow.h that returns a status; when memory is out, collects dead tensors and tries once more.
function native.try(f, ...)
  local status = f(...)
  if status == C.FLOW_OUT_OF_MEMORY then
    native.collect_others()
    status = f(...)
  end
  native.check(status)
end

-- Memory that LuaJIT does not see, some 40 bytes of each tensor aside: past a limit that follows what survived the last collection, there
-- is another one. Blocks of little garbage are still in the processor's caches when they are used again, so there is little while
-- collections take little of the time.
local LEAST_SLACK, MOST_SLACK = 8 * 1024 * 1024, 64 * 1024 * 1024      -- core/base/memory.c keeps blocks for that much
local os = rawget(_G, "os")
local clock = type(os) == "table" and os.clock or function() return 0 end      -- without one the slack stays unchanged
local slack, last_collection = LEAST_SLACK, clock()
local limit = slack

-- A collection of all but what is kept for a call; the limit of live bytes is set again after it. Tensors in garbage are released here,
-- by their __gc. how, more: of collectgarbage.
local function collect_others(how, more)
  local stopped = collectgarbage("isrunning") == false      -- by the host, whose decision a collection would undo
  local started = clock()
  collectgarbage(how, more)
  if stopped then collectgarbage("stop") end
  local now, live = clock(), C.flow_live_bytes()
  local share = (now - started) / (now - last_collection)
  if share > 0.3 then slack = math.min(2 * slack, MOST_SLACK + live / 2) end
  if share < 0.1 then slack = math.max(slack / 2, LEAST_SLACK) end
  last_collection, limit = now, live + slack
end

-- In full; collect: what is kept, too: not between taking a pointer and the call that reads it.
function native.collect_others() collect_others "collect" end
function native.collect()
  forget_kept()
  collect_others "collect"
end

-- When tensors hold more than the limit. One step that is larger than any heap ends a cycle, or makes a whole one, in two thirds of the
-- time of a full collection, which sweeps before it marks.
local function relieve()
  forget_kept()
  collect_others("step", 0x3fffff)
end

---- handles ----------------------------------------------------------------------------------------------------------

local ref = state.ref

-- Whether a value is a Lua tensor, eager or of a trace; variables and symbolic tensors are not.
function native.is_tensor(value)
  return type(value) == "cdata" and ffi.istype(ref, value)
end

-- Until tensor/variable.lua, which says it better, is loaded, nothing is a variable.
function native.is_variable() return false end

-- A Lua tensor for a new reference, which it takes over. All come from here, and so garbage of others is collected here.
function native.tensor(pointer)
  local made = ref(pointer)      -- no tail call: LuaJIT does not compile one to a constructor
  if C.flow_live_bytes() > limit then relieve() end
  return made
end

-- Its flow_tensor *, borrowed, and kept alive until the next native.check. Raises for anything but a tensor that is open.
function native.pointer(t)
  if type(t) ~= "cdata" or not ffi.istype(ref, t) then errors.raise("expected a tensor, got %s", errors.describe(t)) end
  if t.p == nil then errors.raise("this tensor was closed") end
  keep(t)
  return t.p
end

-- Releases the reference now. A second call does nothing: NULL may be released.
function native.close_tensor(t)
  local p = t.p
  t.p = nil
  C.flow_tensor_release(p)
end

-- A zeroed array of at least n elements: native.array("double", 100). Its type has a fixed size, a power of two: LuaJIT 2.1
-- up to 2023 allocates variable-length arrays ("double[?]") far too small when a compiled trace that sank the allocation is
-- left (the size of the type, which they do not have, instead of the size of the array), and C then writes into other objects.
local array_types = {}
function native.array(element, n)
  local types = array_types[element]
  if not types then
    types = {}
    array_types[element] = types
  end
  local size = 1
  while size < n do size = size * 2 end
  local ctype = types[size]
  if not ctype then
    ctype = ffi.typeof(element .. "[" .. size .. "]")
    types[size] = ctype
  end
  return ctype()
end

-- The position in a list of texts of the one that is nearest to `name`, a text; nil if none is within `most` edits (nil: the library's
-- rule).
function errors.nearest_in(name, list, most)
  local texts = native.array("const char *", #list)
  for i, text in ipairs(list) do texts[i - 1] = text end
  keep(list)
  local index = C.flow_nearest_name(name, texts, #list, most or -1)
  return index >= 0 and index + 1 or nil
end

-- Room for `count` handles that a function of flow.h fills in, NULL at first.
function native.out(name, count)
  return native.array(name .. " *", count or 1)
end

-- The handle that a call wrote to out[0]; the collector gives it to `release`. out may be used again for the next handle.
function native.own(out, release)
  return ffi.gc(out[0], release)
end

-- Releases a handle of native.own now. The caller forgets it afterwards: it may not be used, nor closed again.
function native.close(handle, release)
  release(ffi.gc(handle, nil))
end

-- A flow_tensor *[count] of a list of tensors, and count (nil: the length of the list). Raises unless all are tensors that are open.
function native.pointers(tensors, count)
  count = count or #tensors
  local list = native.array("flow_tensor *", count)
  for i = 1, count do list[i - 1] = native.pointer(tensors[i]) end
  keep(tensors)
  return list, count
end

local dims_type = ffi.typeof("int64_t[8]")
-- A shape as int64_t[8] and its rank. The entries are numbers or 64-bit integers that the caller has checked: a fraction would be cut off.
function native.dims(shape)
  local rank = #shape
  if rank > C.FLOW_MAX_RANK then errors.raise("a tensor has at most %d dimensions, got %d", C.FLOW_MAX_RANK, rank) end
  local dims = dims_type()
  for i = 1, rank do dims[i - 1] = shape[i] end
  return dims, rank
end

-- Text of a function f(handle, buffer, size) that returns the whole length.
function native.text(f, handle)
  local size = 4096
  while true do
    local buffer = native.array("char", size)
    local length = f(handle, buffer, size)
    if length < 0 then
      native.collect_others()
      length = f(handle, buffer, size)
      if length < 0 then fail(C.FLOW_OUT_OF_MEMORY) end
    end
    if length < size then return ffi.string(buffer, length) end
    size = length + 1
  end
end

---- attributes ---------------------------------------------------------------------------------------------------------

-- The attributes of one op call, all zero: one scratch union, valid until the next call of this function.
local scratch = ffi.new("flow_attributes")
local scratch_size = ffi.sizeof(scratch)
function native.attributes()
  ffi.fill(scratch, scratch_size)
  return scratch
end

native.INFER = -9223372036854775807LL - 1LL     -- INT64_MIN: the dimension that reshape works out

---- dtypes -----------------------------------------------------------------------------------------------------------------

native.dtypes, native.dtype_names = {}, {}
for dtype = 0, C.FLOW_DTYPE_COUNT - 1 do
  local name = ffi.string(C.flow_dtype_name(dtype))
  native.dtypes[name], native.dtype_names[dtype] = dtype, name
end

-- What other libraries call dtypes.
local OTHER_DTYPES = { float = "float32", double = "float64", half = "float16", long = "int64", int = "int32", short = "int16",
  byte = "uint8", boolean = "bool", str = "string" }

-- The number of a dtype by its name; raises for a name that is not known. what: the call that was given the name, for messages, or nil.
function native.dtype(name, what)
  local dtype = native.dtypes[name]
  if not dtype then
    local call, other = what and what .. ": " or "", OTHER_DTYPES[name]
    if type(name) ~= "string" then errors.raise("%sa dtype is a string such as \"float32\", got %s", call, errors.describe(name)) end
    errors.raise("%sunknown dtype %q%s", call, name, other and (": write %q"):format(other) or errors.suggestion(name, native.dtypes))
  end
  return dtype
end

local pointer_types = {
  float32 = "float *", float64 = "double *", float16 = "uint16_t *", bfloat16 = "uint16_t *", int8 = "int8_t *",
  uint8 = "uint8_t *", int32 = "int32_t *", int64 = "int64_t *", bool = "bool *",
}
-- A typed pointer to t's elements, good as long as t lives. Of a tensor on a device: to a copy on the host, which lives as long as the
-- pointer does.
function native.data(t)
  local pointer, copy = native.pointer(t), nil
  if C.flow_tensor_device(pointer) >= 0 then
    local out = native.out("flow_tensor")
    native.try(C.flow_tensor_to_device, state.context, pointer, -1, out)
    copy = native.tensor(out[0])
    pointer = copy.p
  end
  local data = ffi.cast(pointer_types[native.dtype_names[C.flow_tensor_dtype(pointer)]], C.flow_tensor_data(pointer))
  return copy and ffi.gc(data, function() copy = nil end) or data
end

-- A copy of t's elements as a double array, row by row. They are Lua numbers, which what data() points to need not be: memory that others
-- filled may hold NaNs that LuaJIT takes for objects.
function native.doubles(t)
  local pointer = native.pointer(t)
  local count = C.flow_tensor_size(pointer)
  local values = native.array("double", count)
  native.check(C.flow_tensor_read(pointer, values, count))
  return values, count
end

-- Whether a value is a 64-bit integer of LuaJIT, 1LL or 1ULL.
function native.is_int64(value)
  return type(value) == "cdata" and (ffi.istype("int64_t", value) or ffi.istype("uint64_t", value))
end

function native.is_uint64(value)
  return type(value) == "cdata" and ffi.istype("uint64_t", value)
end

---- interrupts -----------------------------------------------------------------------------------------------------------------

local function after(leave, ...)
  leave()
  return ...
end

-- enter(), then f(...), whose results are returned, then leave(). Ctrl-C in the luajit program is an error between any two instructions:
-- of what enter() changes nothing stays, wherever it comes. leave() sets everything to what it was, however often it is called. No tail
-- call: until all is left `enter` is on the stack, which scopes/lost.lua looks for.
local function between(enter, leave, f, ...)
  local function body(...)
    enter()
    return after(leave, f(...))
  end
  local function finish(ok, ...)
    if ok then return ... end
    leave()
    error((...), 0)
  end
  return select(1, finish(pcall(body, ...)))
end

-- The same for what belongs to the running coroutine (scopes.lua).
function native.between(enter, leave, f, ...)
  local own, before = scopes.own(), nil
  local function open()
    before = scopes.enter(own, open)
    enter()
  end
  return between(open, function() leave() scopes.leave(own, before or own.depth) end, f, ...)
end

-- As native.between, of a trace that begin() begins; f ends it, or it is thrown away.
function native.while_tracing(begin, f, ...)
  local depth = C.flow_trace_depth(state.context)
  return native.between(begin, function()
    while C.flow_trace_depth(state.context) > depth do C.flow_trace_abort(state.context) end
  end, f, ...)
end

require "flow.interrupts"(native, between)

return native

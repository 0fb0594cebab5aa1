--- Calls every function of the C API that takes pointers, with NULL for all of them and for each alone, and with NULLs in each list of
--- objects, the others being objects that this file makes. A program, which spec/unit/null_pointers_spec.lua runs, since a fault ends it:
--- luajit null_calls.lua FIRST, where FIRST is the number of the first function. Before each call it writes the call's line to standard
--- error; after a call that failed without a sentence, a line that begins with "SILENT"; at the end "done".
--- Prototypes come from lua/flow/cdef, which scripts/gen_cdef makes of the headers, so a new function is called, too. A new type of object
--- has its line in `makers`.
local ffi = require "ffi"
ffi.cdef(require "flow.cdef.types")
local C = ffi.load(os.getenv "FLOWLUA_LIB")
local functions = require "flow.cdef.functions"

local declared, kept = {}, {}

local function call(name, ...)
  if not declared[name] then
    ffi.cdef(functions:match(";" .. name .. "=([^;]+)") .. ";")
    declared[name] = true
  end
  return C[name](...)
end

local function keep(object)
  kept[#kept + 1] = object
  return object
end

-- What a constructor puts in its last parameter; the parameter after those that were given. Nothing where it fails.
local function made(kind, name, ...)
  local out = keep(ffi.new(kind .. " *[1]"))
  local arguments, count = { ... }, select("#", ...)
  arguments[count + 1] = out
  assert(call(name, unpack(arguments, 1, count + 1)) == 0, name .. ": " .. ffi.string(call("flow_last_error")))
  return out[0]
end

local objects = {}
local function of(kind) return objects["flow_" .. kind] end

local function list(kind, ...) return keep(ffi.new("flow_" .. kind .. " *[" .. select("#", ...) .. "]", ...)) end
local function shape(...) return keep(ffi.new("int64_t[" .. select("#", ...) .. "]", ...)) end

-- y = 2 x as a plan for x {rows, 2}.
local function plan()
  assert(call("flow_trace_begin", of "context") == 0)
  local x = made("flow_tensor", "flow_trace_input", of "context", 0, 2, shape(-1, 2))
  local y = list("tensor", nil)
  assert(call("flow_apply", of "context", call("flow_op_find", "add"), list("tensor", x, x), 2, nil, y) == 0)
  return made("flow_plan", "flow_trace_end", of "context", y, 1)
end

-- Each uses those above it.
local makers = {
  { "context", function() return made("flow_context", "flow_context_new") end },
  { "scopes", function() return made("flow_scopes", "flow_scopes_new", of "context") end },
  { "tensor", function() return made("flow_tensor", "flow_tensor_new", 0, 2, shape(2, 2)) end },
  { "variable", function() return made("flow_variable", "flow_variable_new", of "tensor", "v", 1, 0) end },
  { "plan", plan },
  { "instance", function() return made("flow_instance", "flow_instance_new", of "plan", 2) end },
  { "tape", function() return made("flow_tape", "flow_tape_begin", of "context") end },
  { "arguments", function() return made("flow_arguments", "flow_arguments_new") end },
  { "layer", function()
    local units = made("flow_arguments", "flow_arguments_new")
    assert(call("flow_arguments_set_number", units, "units", 2) == 0)
    return made("flow_layer", "flow_layer_new", "Dense", "dense", units)
  end },
  { "group_names", function()
    return made("flow_group_names", "flow_group_names_new", keep(ffi.new("const char *[1]", { "Dense" })), 1)
  end },
  { "optimizer", function() return made("flow_optimizer", "flow_optimizer_new", "SGD", nil, of "arguments") end },
  { "update", function()
    return made("flow_update", "flow_update_begin", of "context", of "optimizer", nil, nil, list("tensor", of "tensor"),
                list("variable", of "variable"), 1)
  end },
  { "loss_scale", function() return made("flow_loss_scale", "flow_loss_scale_new", nil, 8, 2) end },
  { "schedule", function()
    local rate = made("flow_arguments", "flow_arguments_new")
    for name, value in pairs { initial_learning_rate = 1, decay_steps = 2, decay_rate = 0.5 } do
      assert(call("flow_arguments_set_number", rate, name, value) == 0)
    end
    return made("flow_schedule", "flow_schedule_new", "ExponentialDecay", rate)
  end },
  { "model", function() return made("flow_model", "flow_model_load", of "context", assert(os.getenv "FLOW_MODEL")) end },
  { "session", function() return made("flow_session", "flow_session_new", of "model") end },
  { "json", function() return made("flow_json", "flow_json_new", ffi.C.FLOW_JSON_OBJECT) end },
  { "record_writer", function() return made("flow_record_writer", "flow_record_writer_new", "records", nil) end },
  { "example", function() return made("flow_example", "flow_example_new") end },
  { "tensor_writer", function() return made("flow_tensor_writer", "flow_tensor_writer_new") end },
  { "save", function() return made("flow_save", "flow_save_begin", of "tensor_writer", "empty.safetensors", "safetensors", nil, nil) end },
  { "tensor_file", function()
    assert(call("flow_save_wait", of "save") == 0)
    return made("flow_tensor_file", "flow_tensor_file_open", "empty.safetensors", nil)
  end },
  { "event_writer", function() return made("flow_event_writer", "flow_event_writer_new", ".", "") end },
  { "archive", function() return made("flow_archive", "flow_archive_open", assert(os.getenv "FLOW_MODEL")) end },
  { "archive_writer", function() return made("flow_archive_writer", "flow_archive_writer_new", "archive.zip") end },
  { "listing", function() return made("flow_listing", "flow_listing_folders", ".") end },
  { "csv", function()
    assert(call("flow_write_file", "table.csv", "a,b\n1,2\n", 8) == 0)
    return made("flow_csv", "flow_csv_open", "table.csv", ",", 1)
  end },
  { "dataset", function() return made("flow_dataset", "flow_dataset_range", 0, 5, 1, 0) end },
  { "function", function() return made("flow_function", "flow_function_load_text", -1) end },
  { "iterator", function() return made("flow_iterator", "flow_iterator_new", of "context", of "dataset") end },
  { "lookup", function()
    local options = keep(ffi.new "flow_lookup_options")
    options.dtype, options.buckets, options.length = ffi.C.FLOW_INT64, 4, -1
    return made("flow_lookup", "flow_lookup_new", options, nil, nil, nil)
  end },
  { "token_counts", function() return made("flow_token_counts", "flow_token_counts_new") end },
  { "cluster", function() return made("flow_cluster", "flow_cluster_parse", "{}", 2, "", nil, -1) end },
  { "worker", function() return made("flow_worker", "flow_worker_open", of "context", of "cluster", nil) end },
  { "board", function() return made("flow_board", "flow_board_open", ".", "127.0.0.1:0", "") end },
  { "monitor", function() return made("flow_monitor", "flow_monitor_open", "127.0.0.1:0") end },
}

-- Calls of a server and of its links need a second process, and those with devices a GPU: of these NULL is all there is.
local ABSENT = { flow_server = true, flow_server_link = true, flow_device_group = true, flow_row_store = true }

-- What a parameter of this type gets where it is not NULL.
local function value(kind, number)
  if not kind:find "%*" then return number end
  local base, stars = kind:match "^c?o?n?s?t?%s*(flow_[%w_]+)%s*([^%w_]*)"
  if kind:find "^const char %*$" then return "x" end
  if kind:find "^const char %*.*%*$" then
    local texts = keep(ffi.new "const char *[16]")
    for i = 0, 15 do texts[i] = "x" end
    return texts
  end
  if base and not stars:find "%*.*%*" and not kind:find "%*const %*" then
    if objects[base] then return objects[base] end
    if ABSENT[base] then return nil end
    assert(pcall(ffi.sizeof, base) and ffi.sizeof(base), base .. " has no line in makers")
    return keep(ffi.new(base .. "[16]"))
  end
  if base and objects[base] and kind:find "const %*$" then
    local entries = keep(ffi.new(base .. " *[16]"))
    for i = 0, 15 do entries[i] = objects[base] end
    return entries
  end
  return ffi.cast("void *", keep(ffi.new "int64_t[4096]"))
end

local function parameters_of(inner)
  local parameters, depth, current = {}, 0, ""
  for letter in (inner .. ","):gmatch "." do
    depth = depth + (letter == "(" and 1 or letter == ")" and -1 or 0)
    if letter == "," and depth == 0 then
      parameters[#parameters + 1], current = current, ""
    else
      current = current .. letter
    end
  end
  return parameters
end

-- The functions that return a status: in lua/flow/cdef they return int.
local with_status = {}
for header in assert(os.getenv "FLOW_HEADERS"):gmatch "%S+" do
  for name in io.open(header):read("*a"):gmatch "FLOW_API%s+flow_status%s+(flow_[%w_]+)" do with_status[name] = true end
end

-- One call; without: the parameter that is NULL, or "all" pointers. has_list: that parameter is a list of NULLs instead.
local function try(number, name, parameters, without, whole, has_list)
  local arguments = {}
  for i, kind in ipairs(parameters) do
    if not kind:find "%*" then arguments[i] = whole
    elseif without ~= "all" and without ~= i then arguments[i] = value(kind, whole)
    elseif has_list then arguments[i] = ffi.cast("void *", keep(ffi.new "void *[16]")) end
  end
  io.stderr:write(("%d %s, NULL: %s%s, numbers: %d\n"):format(number, name, has_list and "the entries of " or "", without, whole))
  assert(call("flow_set_threads", -5) ~= 0)
  local before = ffi.string(call("flow_last_error"))
  local status = call(name, unpack(arguments, 1, #parameters))
  if with_status[name] and status ~= 0 and ffi.string(call("flow_last_error")) == before then io.stderr:write("SILENT ", name, "\n") end
end

for _, maker in ipairs(makers) do objects["flow_" .. maker[1]] = assert(maker[2](), maker[1]) end

local number, first = 0, tonumber(arg[1])
for name, prototype in functions:gmatch ";(flow_[%w_]+)=([^;]+)" do
  number = number + 1
  local parameters = parameters_of(prototype:match "%((.*)%)")
  if number >= first and table.concat(parameters):find "%*" then
    for whole = 0, 1 do try(number, name, parameters, "all", whole) end
    local pointers = 0
    for _, kind in ipairs(parameters) do pointers = pointers + (kind:find "%*" and 1 or 0) end
    for i, kind in ipairs(parameters) do
      if pointers > 1 and kind:find "%*" then
        for whole = 0, 1 do try(number, name, parameters, i, whole) end
      end
      if kind:find "flow_[%w_]+ %*const %*$" then
        for whole = 0, 1 do try(number, name, parameters, i, whole, true) end
      end
    end
  end
end
io.stderr:write "done\n"
os.exit(0, false)

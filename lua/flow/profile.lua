-- profile.lua: flow.profile(f, ...): calls f and returns its time for each kernel.
--
--   print(flow.profile(function() model:fit(x, y) end))
--   flow.profile(function() model:fit(x, y) end, { trace = "trace.json" })      a time line for chrome://tracing or ui.perfetto.dev
--
-- The result has .seconds (all of f), .rows (a list of { op, variant, shape, seconds, calls, bytes }, longest first), .waiting
-- (threads waiting for each other, the engine between kernels) and .outside (Lua, tracing, moving batches); rows, waiting
-- and outside add up to seconds. Times of a row are wall seconds: over all threads, divided by their number; bytes are those of the
-- outputs of one call. .arena is what the values of the largest plan share, .memory all that it holds besides variables, in bytes.
-- Arguments after a table of options, or after f if there is none, go to f.

local native = require "flow.ffi"
local signature = require "flow.signature"
local io = require "flow.io"

local C, check, context = native.C, native.check, native.context
local metatable = {}
local methods = signature.methods("profile", metatable)
metatable.__index = methods

local OPTIONS = { trace = true }
local MOST_EVENTS = 200000      -- of a trace: 10 MB in memory, 30 MB in the file

-- The result, from what the library has counted since flow_profile_begin. seconds: of all of f.
local function collect(seconds)
  local profile = { seconds = seconds, waiting = C.flow_profile_waiting(context), rows = {} }
  local inside = profile.waiting
  for i = 0, C.flow_profile_count(context) - 1 do
    local entry = C.flow_profile_at(context, i)
    profile.rows[i + 1] = { op = native.string(entry.op), variant = native.string(entry.variant), shape = native.string(entry.shape),
                            seconds = entry.seconds, calls = entry.calls, bytes = entry.bytes }
    inside = inside + entry.seconds
  end
  profile.outside = seconds - inside
  profile.arena, profile.memory = C.flow_profile_arena(context), C.flow_profile_memory(context)
  table.sort(profile.rows, function(a, b) return a.seconds > b.seconds end)
  return setmetatable(profile, metatable)
end

---- a time line ---------------------------------------------------------------------------------------------------------------

-- The events as complete events ("Trace Event Format" of Chromium), times in microseconds from the start of f. Kernels that take
-- turns chunk by chunk on one thread are one after the other, each as long as the thread worked for it.
local function trace_text(started)
  local lines, free, threads = {}, {}, {}
  for i = 0, C.flow_profile_event_count(context) - 1 do
    local event = C.flow_profile_event_at(context, i)
    local entry = C.flow_profile_at(context, event.entry)
    local thread = event.thread
    local begin = math.max(event.begin - started, free[thread] or 0)
    free[thread] = begin + event.busy
    if not threads[thread] then
      threads[thread] = true
      lines[#lines + 1] = ('{"ph":"M","name":"thread_name","pid":1,"tid":%d,"args":{"name":"%s"}}'):format(thread,
        thread == 0 and "caller" or "team " .. thread)
    end
    lines[#lines + 1] = ('{"ph":"X","cat":"kernel","name":"%s","pid":1,"tid":%d,"ts":%.3f,"dur":%.3f,"args":{"variant":"%s",' ..
      '"shapes":"%s","output bytes":%.0f}}'):format(native.string(entry.op), thread, 1e6 * begin, 1e6 * event.busy,
      native.string(entry.variant), native.string(entry.shape), entry.bytes)
  end
  return '{"displayTimeUnit":"ms","traceEvents":[\n' .. table.concat(lines, ",\n") .. "\n]}\n"
end

---- measuring -----------------------------------------------------------------------------------------------------------------

-- A table of nothing but options; f may take its own tables.
local function is_options(value)
  if type(value) ~= "table" or getmetatable(value) or next(value) == nil then return false end
  for name in pairs(value) do
    if not OPTIONS[name] then return false end
  end
  return true
end

-- Calls f(...) while the library measures; returns the result, and drops those of f. path: of the time line, or nil. An error of f ends the
-- measurement and is raised again. Only one measurement runs at a time in a Lua state.
local function measure(path, f, ...)
  check(C.flow_profile_begin(context))
  local status = path and C.flow_profile_keep_events(context, MOST_EVENTS) or 0
  if status ~= 0 then
    C.flow_profile_end(context)
    check(status)
  end
  local started = C.flow_clock()
  local ok, message = pcall(f, ...)
  local seconds = C.flow_clock() - started
  C.flow_profile_end(context)
  if not ok then error(message, 0) end
  if path then io.write(path, trace_text(started)) end
  return collect(seconds)
end

local module = signature.module "flow"
signature.takes("f: callable, { trace?: path }, arguments...", true)
function module.profile(f, options, ...)
  signature.check_callable("flow.profile", f)
  if not is_options(options) then return measure(nil, f, options, ...) end
  return measure(io.path(options.trace, "flow.profile: trace"), f, ...)
end

-- The seconds of all rows whose op and variant (either may be nil) are these.
function methods:total(op, variant)
  local seconds = 0
  for _, row in ipairs(self.rows) do
    if (not op or row.op == op) and (not variant or row.variant == variant) then seconds = seconds + row.seconds end
  end
  return seconds
end

-- Decimal units, three digits: "1.50 MB".
local function bytes_text(bytes)
  if bytes < 1000 then return ("%d B"):format(bytes) end
  for _, unit in ipairs { "kB", "MB", "GB" } do
    bytes = bytes / 1000
    if bytes < 1000 then return (bytes < 10 and "%.2f %s" or bytes < 100 and "%.1f %s" or "%.0f %s"):format(bytes, unit) end
  end
  return ("%.1f TB"):format(bytes / 1000)
end

-- A table: a line for each row, what is beside the kernels, and the total. tostring(profile), print(profile).
function metatable:__tostring()
  local head = "%-26s %-12s %10s %7s %9s %9s  %s"
  local lines = { head:format("op", "variant", "ms", "%", "calls", "output", "shapes of the first operands") }
  local function line(op, variant, seconds, calls, shape, bytes)
    local text = ("%-26s %-12s %10.3f %7.1f %9s %9s  %s"):format(op, variant, 1000 * seconds, 100 * seconds / self.seconds, calls,
      bytes and bytes_text(bytes) or "", shape)
    lines[#lines + 1] = (text:gsub("%s+$", ""))
  end
  for _, row in ipairs(self.rows) do line(row.op, row.variant, row.seconds, ("%d"):format(row.calls), row.shape, row.bytes) end
  line("(waiting)", "", self.waiting, "", "threads for each other, the engine between kernels")
  line("(outside)", "", self.outside, "", "Lua, tracing, moving batches")
  line("total", "", self.seconds, "", "")
  if self.memory > 0 then
    local memory, arena = bytes_text(self.memory), bytes_text(self.arena)
    lines[#lines + 1] = ("memory of the largest plan: %s, of which its values share %s"):format(memory, arena)
  end
  return table.concat(lines, "\n")
end

return module

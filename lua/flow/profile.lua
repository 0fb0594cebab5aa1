-- profile.lua: flow.profile(f, ...): calls f and tells where its time went, kernel by kernel.
--
--   print(flow.profile(function() model:fit(x, y) end))
--
-- The result has .seconds (all of f), .rows (a list of { op, variant, shape, seconds, calls }, longest first), .waiting
-- (threads waiting for each other, the engine between kernels) and .outside (Lua, tracing, moving batches); rows, waiting
-- and outside add up to seconds. Times of a row are wall seconds: over all threads, divided by their number.

local native = require "flow.ffi"
local errors = require "flow.errors"

local C, check, raise, context = native.C, native.check, errors.raise, native.context
local methods = {}
local metatable = { __index = methods }

local function collect(seconds)
  local profile = { seconds = seconds, waiting = C.flow_profile_waiting(context), rows = {} }
  local inside = profile.waiting
  for i = 0, C.flow_profile_count(context) - 1 do
    local entry = C.flow_profile_at(context, i)
    profile.rows[i + 1] = { op = native.string(entry.op), variant = native.string(entry.variant), shape = native.string(entry.shape),
                            seconds = entry.seconds, calls = entry.calls }
    inside = inside + entry.seconds
  end
  profile.outside = seconds - inside
  table.sort(profile.rows, function(a, b) return a.seconds > b.seconds end)
  return setmetatable(profile, metatable)
end

local function profile(f, ...)
  if type(f) ~= "function" then raise("flow.profile takes a function, got %s", errors.describe(f)) end
  check(C.flow_profile_begin(context))
  local started = C.flow_clock()
  local ok, message = pcall(f, ...)
  local seconds = C.flow_clock() - started
  C.flow_profile_end(context)
  if not ok then error(message, 0) end
  return collect(seconds)
end

-- The seconds of all rows whose op and variant (either may be nil) are these.
function methods:total(op, variant)
  local seconds = 0
  for _, row in ipairs(self.rows) do
    if (not op or row.op == op) and (not variant or row.variant == variant) then seconds = seconds + row.seconds end
  end
  return seconds
end

function metatable:__tostring()
  local lines = { ("%-26s %-12s %10s %7s %9s  %s"):format("op", "variant", "ms", "%", "calls", "shapes of the first operands") }
  local function line(op, variant, seconds, calls, shape)
    local text = ("%-26s %-12s %10.3f %7.1f %9s  %s"):format(op, variant, 1000 * seconds, 100 * seconds / self.seconds, calls, shape)
    lines[#lines + 1] = (text:gsub("%s+$", ""))
  end
  for _, row in ipairs(self.rows) do line(row.op, row.variant, row.seconds, ("%d"):format(row.calls), row.shape) end
  line("(waiting)", "", self.waiting, "", "threads for each other, the engine between kernels")
  line("(outside)", "", self.outside, "", "Lua, tracing, moving batches")
  line("total", "", self.seconds, "", "")
  return table.concat(lines, "\n")
end

return { profile = profile }

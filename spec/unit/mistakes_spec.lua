-- mistakes_spec.lua: made-up mistakes: every public function with wrong arguments. Whatever is raised names the line of this file, in one
-- message of a reasonable length, and never a place inside lua/flow. FLOW_CASES=10000 makes up this many, FLOW_SEED says which.
local support = require "spec.support.init"
local ffi = require "ffi"
local flow = require "flow"
local signature = require "flow.signature"
for _, name in ipairs(getmetatable(flow).names()) do local _ = flow[name] end      -- what is made when it is first asked for is public, too
local all = require "spec.support.public"

ffi.cdef "char *getcwd(char *where, size_t size); int chdir(const char *path);"

local cases, seed = tonumber(os.getenv("FLOW_CASES")) or 1500, tonumber(os.getenv("FLOW_SEED")) or 1

local state = seed
local function random(n)      -- 1 .. n: Park and Miller's generator, the same everywhere
  state = state * 48271 % 2147483647
  return state % n + 1
end

local dense = flow.layers.Dense(2)
local WRONG = {
  function() return nil end, function() return 0 / 0 end, function() return -1 end, function() return -3.5 end,
  function() return 0 end,
  function() return 2 ^ 60 end, function() return 1e300 end, function() return math.huge end, function() return 1.5 end,
  function() return "" end, function() return "/dev/null/no such thing" end,
  function() return "/dev/null/x" end, function() return "a\0b" end,
  function() return ("long"):rep(1250000) end, function() return true end, function() return false end,
  function() return {} end, function() return { 1, nil, 3 } end, function() return { "a", 2 } end,
  function() return { { 1 }, { 2, 3 } } end,
  function() return { no_such_option = 1 } end, function() return { dense, nil, dense } end, function() return { {} } end,
  function() return function() end end, function() return os.clock end, function() return coroutine.create(function() end) end,
  function() return flow.zeros { 2, 5 } end, function() return flow.zeros { 4, 1, 2 } end, function() return flow.zeros {} end,
  function() return flow.zeros { 0, 5 } end, function() return flow.zeros({ 3 }, { dtype = "int32" }) end,
  function() return flow.ones({ 2 }, { dtype = "bool" }) end, function() return 5LL end, function() return io.stdout end,
  function() return flow.Variable(flow.zeros { 2 }) end, function() return flow.Input { 3 } end, function() return dense end,
  function() return flow.layers.Dense end, function() return flow.random end, function() return flow.optimizers.Adam() end,
  function() return flow.data.Dataset.range(3) end, function() return flow.metrics.Mean() end, function() return flow.losses.Huber() end,
  function() return flow.GradientTape() end, function() return flow.callbacks.History() end,
  -- what some functions take, so that a wrong argument after it is looked at
  function() return 1 end, function() return 2 end, function() return { 1 } end, function() return { 2, 3 } end,
  function() return flow.ones { 2, 3 } end, function() return "float32" end, function() return function(x) return x end end,
  function() return { flow.ones { 2, 3 }, flow.ones { 2, 3 } } end, function() return flow.data.Dataset.range(3):batch(1) end,
}

-- Not called: hooks that the loops call, what ends the process or waits for its standard input, what calls a function that it is given at
-- once (the error is that function's), what changes all that follows, and what sends jobs to a service.
local SKIPPED = { "^flow%.args$", ":on_", ":set_state$", "^flow%.config%.set_logical_devices$", "^flow%.distribute%.experimental",
  "^flow%.set_random_seed$", "^flow%.tidy$", "^tape:record$", "^flow%.mixed_precision%.set", "^flow%.io%.makedirs$",
  "^flow%.summary%.create_file_writer$", "Job:run$" }

local function is_skipped(name)
  for _, pattern in ipairs(SKIPPED) do
    if name:find(pattern) then return true end
  end
  return false
end

-- One case: a function and its arguments, some of which are options with wrong values.
local function make_up(entries)
  local entry = entries[random(#entries)]
  local record, arguments, shown, n = signature.of(entry.f), {}, {}, 0
  local function give(value)
    n = n + 1
    arguments[n] = value
    shown[n] = tostring(value):sub(1, 40):gsub("%c", " ")
  end
  if entry.make_self then give(entry.make_self()) end
  for _ = 1, math.min(random(#record.positional + 1), 6) do give(WRONG[random(#WRONG)]()) end
  if record.options and #record.options > 0 and random(2) == 1 then
    give({ [record.options[random(#record.options)].name] = WRONG[random(#WRONG)]() })
  end
  return entry, arguments, n, ("%s(%s)"):format(entry.name, table.concat(shown, ", "))
end

describe("mistakes that are made up", function()
  it("are errors at the line of their caller", function()
    local entries, found = {}, {}
    for _, entry in ipairs(all) do
      if signature.of(entry.f) and entry.real and not is_skipped(entry.name) then entries[#entries + 1] = entry end
    end
    local sink, here = flow.log.sink, ffi.string(ffi.C.getcwd(ffi.new("char[4096]"), 4096))
    assert.equal(0, ffi.C.chdir(support.folder()))      -- some texts are taken for paths of files
    flow.log.sink = function() end
    for case = 1, cases do
      local entry, arguments, n, text = make_up(entries)
      if os.getenv("FLOW_SHOW_CASES") then io.stderr:write(case, " ", text, "\n") end
      local ok, message = pcall(function() entry.f(unpack(arguments, 1, n)) end)
      message = tostring(message)
      local at_caller = message:find("^[^\n]*mistakes_spec%.lua:%d+: ") and not message:find("lua/flow/[%w_/]+%.lua:%d")
      if not ok and (not at_caller or #message > 5000) then
        found[#found + 1] = ("case %d of seed %d: %s: %s"):format(case, seed, text, message:sub(1, 300))
      end
    end
    flow.log.sink = sink
    assert.equal(0, ffi.C.chdir(here))
    assert.equal("", table.concat(found, "\n"))
  end)
end)

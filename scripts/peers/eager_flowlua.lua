-- eager_flowlua.lua FOLDER CLOCK THREADS RESULTS: flowlua's side of eager.py, which describes the rows and the conversation.
local flow = require "flow"
local ffi = require "ffi"
local folder, clock, threads, closes = arg[1], arg[2], tonumber(arg[3]), arg[4] == "closed"
flow.config.set_threads(threads)
flow.set_random_seed(1)

ffi.cdef "typedef struct { long seconds, nanoseconds; } bench_time; int clock_gettime(int clock, bench_time *time);"
local time = ffi.new "bench_time"
local number = clock == "processor" and 2 or 1
local function now()
  ffi.C.clock_gettime(number, time)
  return tonumber(time.seconds) + 1e-9 * tonumber(time.nanoseconds)
end

local function uniform(...) return flow.random.uniform({ ... }, { minval = -1, maxval = 1, seed = 1 }) end
local function of(x) return function(f) return function() return f(x) end end end

-- Each row's data is made when the row is first asked for.
local rows = {}
local function add(n)
  local a, b = uniform(n), uniform(n)
  return function() return a + b end
end
rows["sum 1e5"] = function() return of(uniform(1e5))(flow.sum) end
rows["sum 1e6"] = function() return of(uniform(1e6))(flow.sum) end
rows["sum 1e7"] = function() return of(uniform(1e7))(flow.sum) end
rows["sum {131072, 3}, last"] = function() return of(uniform(131072, 3))(function(x) return flow.sum(x, -1) end) end
rows["sum {1000, 1000}, first"] = function() return of(uniform(1000, 1000))(function(x) return flow.sum(x, 1) end) end
rows["max 1e6"] = function() return of(uniform(1e6))(flow.max) end
rows["argmax {1000, 1000}"] = function() return of(uniform(1000, 1000))(function(x) return flow.argmax(x, -1) end) end
rows["std 1e6"] = function() return of(uniform(1e6))(flow.std) end
rows["cumsum 1e6"] = function() return of(uniform(1e6))(flow.cumsum) end
rows["add 10"] = function() return add(10) end
rows["add 1e5"] = function() return add(1e5) end
rows["add 1e6"] = function() return add(1e6) end
rows["add 1e7"] = function() return add(1e7) end
rows["add i32 1e6"] = function()
  local a = flow.random.uniform({ 1e6 }, { maxval = 1000, dtype = "int32", seed = 1 })
  return function() return a + a end
end
rows["+ column {1000, 1000}"] = function()
  local a, b = uniform(1000, 1000), uniform(1000, 1)
  return function() return a + b end
end
rows["ten ops 1e5"] = function()
  local a, b = uniform(1e5), uniform(1e5)
  return function()
    return flow.tidy(function()
      local x = a
      for _ = 1, 5 do x = x * b + a end
      return x
    end)
  end
end
rows["clip 1e6"] = function() return of(uniform(1e6))(function(x) return flow.clip(x, -0.5, 0.5) end) end
rows["where 1e6"] = function()
  local a, b = uniform(1e6), uniform(1e6)
  local c = a:lt(b)
  return function() return flow.where(c, a, b) end
end
rows["pow 1.7 1e6"] = function() return of(flow.abs(uniform(1e6)))(function(x) return x ^ 1.7 end) end
rows["exp 1e6"] = function() return of(uniform(1e6))(flow.exp) end
rows["tanh 1e6"] = function() return of(uniform(1e6))(flow.tanh) end
rows["sin 1e6"] = function() return of(uniform(1e6))(flow.sin) end
rows["softmax {1000, 1000}"] = function() return of(uniform(1000, 1000))(flow.softmax) end
local function cast(from, to)
  return function()
    local x = from == "float32" and uniform(1e6) or flow.random.uniform({ 1e6 }, { maxval = 200, dtype = "int32", seed = 1 }):to(from)
    return function() return x:to(to) end
  end
end
rows["cast f32 to i32 1e6"] = cast("float32", "int32")
rows["cast i32 to f32 1e6"] = cast("int32", "float32")
rows["cast u8 to f32 1e6"] = cast("uint8", "float32")
rows["cast f32 to f64 1e6"] = cast("float32", "float64")
rows["cast f32 to f16 1e6"] = cast("float32", "float16")
rows["concat 2 x {500, 1000}, first"] = function()
  local a = uniform(500, 1000)
  return function() return flow.concat({ a, a }, 1) end
end
rows["concat 2 x {1000, 500}, last"] = function()
  local a = uniform(1000, 500)
  return function() return flow.concat({ a, a }, 2) end
end
rows["slice of {1000, 1000}, copied"] = function()
  local a = uniform(1000, 1000)
  return function() return a[{ { 101, 900 }, { 101, 900 } }]:contiguous() end
end
rows["transpose {1000, 1000}, copied"] = function()
  return of(uniform(1000, 1000))(function(x) return flow.transpose(x):contiguous() end)
end
rows["take 1e4 rows of {1e5, 64}"] = function()
  local table, at = uniform(1e5, 64), flow.random.uniform({ 1e4 }, { minval = 1, maxval = 1e5, dtype = "int32", seed = 2 })
  return function() return flow.take(table, at, 1) end
end
rows["one_hot 1e4 of 100"] = function()
  local labels = flow.random.uniform({ 1e4 }, { maxval = 100, dtype = "int32", seed = 2 })
  return function() return flow.one_hot(labels, 100) end
end
rows["pad {32, 64, 64, 16} by 1"] = function()
  return of(uniform(32, 64, 64, 16))(function(x) return flow.pad(x, { { 0, 0 }, { 1, 1 }, { 1, 1 }, { 0, 0 } }) end)
end
rows["top_k 5 of {1000, 1000}"] = function()
  local x = uniform(1000, 1000)
  return function()
    local values, at = flow.top_k(x, 5)
    at:close()
    return values
  end
end
rows["sort 1e6"] = function() return of(uniform(1e6))(flow.sort) end
rows["sort {1000, 1000}, last"] = function() return of(uniform(1000, 1000))(function(x) return flow.sort(x, -1) end) end
rows["argsort 1e5"] = function() return of(uniform(1e5))(flow.argsort) end
rows["random uniform 1e6"] = function() return function() return flow.random.uniform({ 1e6 }) end end
rows["random normal 1e6"] = function() return function() return flow.random.normal({ 1e6 }) end end
rows["random integers 1e6"] = function()
  return function() return flow.random.uniform({ 1e6 }, { maxval = 1000, dtype = "int32" }) end
end
local function product(dtype, ...)
  local shape = { ... }
  return function()
    local a = uniform(unpack(shape)):to(dtype)
    return function() return flow.matmul(a, a) end
  end
end
rows["product f32 512"] = product("float32", 512, 512)
rows["product f32 64"] = product("float32", 64, 64)
rows["product f64 512"] = product("float64", 512, 512)
rows["product 64 x f32 64"] = product("float32", 64, 64, 64)
rows["load_csv 1e5 x 20"] = function()
  return function() return flow.data.load_csv(folder .. "/table.csv", { dtypes = "float32" })[1] end
end
rows["item 1000 times"] = function()
  local x = uniform(1000)
  return function()
    local total = 0
    for i = 1, 1000 do total = total + x[i]:item() end
    assert(total == total)
  end
end

-- "ROW\tSECONDS" -> calls and seconds of about that long a window. Results are left to the collector, as users do, unless RESULTS is
-- "closed".
local made, name = nil, nil
local function run(count)
  local start = now()
  for _ = 1, count do
    local result = made()
    if closes and result then result:close() end
  end
  return now() - start
end
io.stdout:write "ready\n"
io.stdout:flush()
for line in io.lines() do
  local row, seconds = line:match "^(.*)\t(.*)$"
  if row ~= name then
    made, name = nil, row
    collectgarbage()
    made = rows[row] and rows[row]()
    if made then run(3) end
  end
  if made then
    local count = 1
    local took = run(count)
    while took < 0.1 * tonumber(seconds) do
      count = count * 2
      took = run(count)
    end
    count = math.max(1, math.ceil(count * tonumber(seconds) / took))
    io.stdout:write(("window %d %.9f\n"):format(count, run(count)))
  else
    io.stdout:write "window 0 0\n"
  end
  io.stdout:flush()
end

-- flowlua_pipeline.lua MODE FOLDER: flowlua's side of pipeline.py, which describes the modes and the conversation. Mode draw makes the
-- pictures.
local flow = require "flow"
local ffi = require "ffi"
local mode, folder = arg[1], arg[2]
flow.set_random_seed(1)

ffi.cdef "typedef struct { long seconds, nanoseconds; } bench_time; int clock_gettime(int clock, bench_time *time);"
local time = ffi.new "bench_time"
local function now()
  ffi.C.clock_gettime(1, time)
  return tonumber(time.seconds) + 1e-9 * tonumber(time.nanoseconds)
end

-- Clouds of colours with the noise of a camera: as large as photographs of this size are, some 15 KB.
local function draw()
  local classes, count = 5, 400
  for class = 1, classes do
    if os.execute(("mkdir -p '%s/class%d'"):format(folder, class)) ~= 0 then error("cannot make the folder " .. folder) end
    for i = 1, count do
      local seed = class * count + i
      local clouds = flow.random.normal({ 6, 8, 3 }, { mean = 120, stddev = 45, seed = seed })
      local noise = flow.random.normal({ 240, 320, 3 }, { stddev = 5, seed = seed })
      local pixels = flow.image.resize(clouds, { 240, 320 }, { interpolation = "bicubic" }) + noise
      flow.image.save(("%s/class%d/%04d.jpg"):format(folder, class, i), pixels, { quality = 85 })
      if i % 20 == 0 then collectgarbage() end
    end
  end
  assert(io.open(folder .. "/complete", "w")):close()
end

local function reader()
  local ds = flow.image_dataset_from_directory(folder, { image_size = { 180, 180 }, batch_size = 32, seed = 1, verbose = false })
  return function()
    local images = 0
    for x, y in ds:iter() do
      images = images + x.shape[1]
      x:close()
      y:close()
    end
    return images
  end
end

local function trainer(cached)
  local model, shape, classes, batch = require("flow.cli.bench_nets").flowers()
  local rows = 10 * batch
  local x = flow.random.uniform({ rows, unpack(shape) }, { maxval = 255, seed = 1 })
  local y = flow.random.uniform({ rows }, { maxval = classes, dtype = "int32", seed = 2 })
  local ds = flow.data.Dataset.from_tensor_slices({ x, y }):batch(batch):cache()
  return function()
    if cached then model:fit(ds, { epochs = 4, verbose = 0 })
    else model:fit(x, y, { batch_size = batch, epochs = 4, shuffle = false, verbose = 0 }) end
    return 4 * rows
  end
end

if mode == "draw" then
  draw()
  return
end
local run = mode == "read" and reader() or trainer(mode == "cached")
for _ in io.lines() do
  local start, processor = now(), os.clock()
  local images = run()
  io.stdout:write(("window %d %.6f %.6f\n"):format(images, now() - start, os.clock() - processor))
  io.stdout:flush()
end

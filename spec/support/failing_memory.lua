-- failing_memory.lua FOLDER: in a process whose allocator is spec/host/failing_memory.c, each of these programs is run with memory for no
-- allocation, then for one, two, ... until it needs no more, in longer strides later. Each time it raises an error or gives
-- what it should; the next run, with memory, does. Prints a line for each program: its name, the allocator that failed, how often the
-- program raised an error, and what was wrong.
local ffi = require "ffi"
ffi.cdef "void failing_memory_begin(long); int failing_memory_end(void); int open(const char *, int); int close(int);"
local flow = require "flow"
local layers = flow.layers
local C = require("flow.ffi").C
local folder = (...)

local programs = {}

local xs, ys = {}, {}
for i = 1, 48 do xs[i], ys[i] = { i % 3, i % 5, i % 7, 1 }, i % 3 end
xs, ys = flow.tensor(xs), flow.tensor(ys, "int32")

local function model()
  flow.set_random_seed(3)
  local made = flow.Sequential { layers.Input { 4 }, layers.Dense(8, { activation = "relu", kernel_constraint = "max_norm" }),
                                 layers.Dropout(0.1), layers.Dense(3, { activation = "softmax" }) }
  local rate = flow.optimizers.schedules.CosineDecay(0.1, 10)
  made:compile { optimizer = flow.optimizers.Adam { learning_rate = rate }, loss = "sparse_categorical_crossentropy" }
  return made
end

function programs.model()
  local first, path = model(), folder .. "/m.keras"
  first:fit(xs, ys, { epochs = 1, batch_size = 16, verbose = 0 })
  first:save(path)
  local again = flow.load_model(path)
  again:save_weights(folder .. "/m.safetensors")
  first:load_weights(folder .. "/m.safetensors")
  return tostring(again:predict(xs, { verbose = 0 })) .. tostring(first:predict(xs, { verbose = 0 }))
end

function programs.config()
  local text = flow.models.model_from_json(model():to_json()):to_json()
  return (text:gsub("_%d+", ""))                    -- numbers in names grow with each model
end

-- Of two checkpoints the newest is restored, or none.
local kept
function programs.checkpoint()
  local counter = flow.Variable(0)
  local manager = flow.train.CheckpointManager(flow.train.Checkpoint { counter = counter }, { directory = folder .. "/kept" })
  if not kept then
    for i = 1, 2 do
      counter:assign(i)
      manager:save()
    end
    kept = true
  end
  manager:restore_or_initialize()
  return tostring(counter:value():item())
end

function programs.recurrent()
  flow.set_random_seed(3)
  local rnn = flow.Sequential { layers.Input { 4, 4 }, layers.Bidirectional(layers.LSTM(3)), layers.Dense(1) }
  return tostring(rnn:predict(xs:reshape { 12, 4, 4 }, { verbose = 0 }))
end

function programs.dataset()
  local ds = flow.data.Dataset.from_tensor_slices { xs, ys }:map(function(x, y) return x * 2, y end)
  local sums = {}
  for x, y in ds:cache():shuffle(20, { seed = 3 }):batch(16):prefetch(2):iter() do sums[#sums + 1] = tostring(x:sum()) .. tostring(y) end
  return table.concat(sums, " ")
end

function programs.text()
  local vectorize = layers.TextVectorization { max_tokens = 20, output_sequence_length = 5 }
  vectorize:adapt(flow.data.Dataset.from_tensor_slices(flow.tensor { "the cat sat", "a dog ran" }):batch(2))
  local lookup = layers.StringLookup { vocabulary = { "a", "b", "c" } }
  return tostring(vectorize(flow.tensor { "the dog", "cat" })) .. tostring(lookup(flow.tensor { "c", "z" }))
end

function programs.table()
  local path, sums = folder .. "/c.csv", {}
  local file = assert(io.open(path, "w"))
  for i = 0, 30 do file:write(i == 0 and "a,b,l" or ("%d,%g,%d"):format(i, i / 2, i % 2), "\n") end
  file:close()
  local options = { batch_size = 10, label_name = "l", shuffle = false, num_epochs = 1 }
  for x in flow.data.experimental.make_csv_dataset(path, options):iter() do sums[#sums + 1] = tostring(x.b:sum()) end
  return table.concat(sums, " ")
end

function programs.records()
  local path, count = folder .. "/r.tfrecord", 0
  local writer = flow.data.TFRecordWriter(path, { compression_type = "GZIP" })
  for i = 1, 20 do writer:write_example { a = { i, i + 1 }, text = "text" .. i } end
  writer:close()
  for _ in flow.data.TFRecordDataset(path, { compression_type = "GZIP" }):iter() do count = count + 1 end
  return tostring(count)
end

function programs.pictures()
  local sums = {}
  for _, ending in ipairs { "png", "jpg", "bmp" } do
    local path = folder .. "/i." .. ending
    flow.utils.save_img(path, flow.full({ 8, 8, 3 }, 100))
    sums[#sums + 1] = tostring(flow.utils.img_to_array(flow.utils.load_img(path)):sum())
  end
  return table.concat(sums, " ")
end

local function descriptors()
  local next_one = ffi.C.open("/dev/null", 0)
  ffi.C.close(next_one)
  return next_one
end

-- What was wrong with one run, nil: nothing. A run in which memory was out may still give what it should.
local function wrong(ok, result, want)
  if ok then return result ~= want and "another result" or nil end
  if type(result) ~= "string" or not result:find "memory" then return "the error " .. tostring(result) end
end

-- Two allocators fail: the system's, for all that comes after a chosen call, and the library's own, which also hands out what it has kept,
-- for one call.
local ways = {
  system = { begin = ffi.C.failing_memory_begin, over = function() return ffi.C.failing_memory_end() == 0 end },
  library = { begin = C.flow_fail_allocation, over = function(after, needed)
    C.flow_fail_allocation(-1)
    return after >= needed
  end },
}

local function try(program, want, way)
  local failures, after, before = 0, 0, C.flow_allocation_count()
  program()
  local needed, over = C.flow_allocation_count() - before
  repeat
    way.begin(after)
    local ok, result = pcall(program)
    over = way.over(after, needed)
    local problem = wrong(ok, result, want)
    if not ok then failures = failures + 1 end
    ok, result = pcall(program)
    problem = problem or wrong(ok, result, want) or not ok and "no memory where there is some"
    if problem then return failures, ("%s after %d"):format(problem, after) end
    after = after + 1 + math.floor(after / 25)
  until over
  return failures
end

for _, name in ipairs { "model", "config", "checkpoint", "recurrent", "dataset", "text", "table", "records", "pictures" } do
  local program = programs[name]
  local want = program()
  assert(program() == want, name .. " gives two results")
  local open = descriptors()
  for _, way in ipairs { "system", "library" } do
    local failures, problem = try(program, want, ways[way])
    collectgarbage()
    if descriptors() ~= open then problem = problem or "a file stays open" end
    print(name, way, failures, problem or "whole")
  end
end

-- record_data_spec.lua: files of records in a pipeline, and the layers that prepare images inside of ds:map.
local support = require "spec.support.init"
local flow = require "flow"
local layers, message_of = flow.layers, support.message_of

local function path_of(name) return (support.file("marker", ""):gsub("marker$", name)) end

local function write(name, compression, first, count)
  local path = path_of(name)
  local writer = flow.data.TFRecordWriter(path, { compression_type = compression })
  for i = first, first + count - 1 do
    writer:write_example({ image = "image " .. i, label = i, xs = { i, i + 0.5 } }, { xs = "float32" })
  end
  writer:close()
  return path
end

describe("TFRecordDataset", function()
  for _, compression in ipairs { "", "GZIP", "ZLIB" } do
    it("gives what was written, compression_type " .. (compression == "" and "none" or compression), function()
      local a, b = write("a", compression, 0, 5), write("b", compression, 5, 3)
      local ds = flow.data.TFRecordDataset { a, b, compression_type = compression }
      ds = ds:map(flow.data.parse_example { image = "bytes", label = "int64", xs = { "float32", { 2 } } }, { num_parallel_calls = 2 })
      local n = 0
      for image, label, xs in ds:iter() do
        assert.same({ "image " .. n, n, { n, n + 0.5 } }, { image, label:item(), xs:totable() })
        n = n + 1
      end
      assert.equal(8, n)
      local labels = {}
      for label in flow.data.TFRecordDataset({ a, b }, { compression_type = compression, num_parallel_reads = 2 })
          :map(flow.data.parse_example { label = "int64" }):batch(8):iter() do
        labels = label:totable()
      end
      assert.same({ 0, 5, 1, 6, 2, 7, 3, 4 }, labels)
    end)
  end

  it("says where a file is damaged and what a record lacks", function()
    local path = support.file("damaged", "no record at all")
    local ds = flow.data.TFRecordDataset(path)
    assert.truthy(message_of(function() ds:iter()() end):find("damaged: the record at byte 0 is damaged", 1, true))
    ds = flow.data.TFRecordDataset(write("c", "", 0, 1)):map(flow.data.parse_example { other = "int64" })
    assert.truthy(message_of(function() ds:iter()() end):find("feature 'other' is missing", 1, true))
    assert.truthy(message_of(function() flow.data.parse_example { x = "int32" } end):find('"bytes", "float32" or "int64"', 1, true))
    assert.truthy(message_of(function() flow.data.TFRecordDataset { compression_type = "GZIP" } end):find("a list of files", 1, true))
    assert.truthy(message_of(function() flow.data.TFRecordDataset({ "a" }, { reads = 1 }) end):find('unknown option "reads"', 1, true))
  end)

  it("takes defaults, any number of values, and components in the order of a list", function()
    local ds = flow.data.TFRecordDataset { write("d", "", 3, 1) }
    ds = ds:map(flow.data.parse_example { { "xs", "float32", { -1 } }, { "weight", "float32", default = 2 }, { "label", "int64" } })
    local xs, weight, label = ds:iter()()
    assert.same({ { 3, 3.5 }, 2, 3 }, { xs:totable(), weight:item(), label:item() })
  end)
end)

describe("layers in ds:map", function()
  local x = flow.arange(0, 40 * 5 * 5, { dtype = "float32" }):reshape { 40, 5, 5, 1 }

  local function collect(ds)
    local list = {}
    for image in ds:iter() do list[#list + 1] = image:reshape({ image.size }):totable() end
    return list
  end

  it("draw other numbers for every element, whatever the threads", function()
    local flip, turn = layers.RandomFlip { name = "flip" }, layers.RandomRotation(0.5, { name = "turn" })
    local function pipeline(calls)
      local ds = flow.data.Dataset.from_tensor_slices(x)
      local function augment(image) return turn(flip(image, { training = true }), { training = true }) end
      return collect(ds:map(augment, { num_parallel_calls = calls }))
    end
    flow.set_random_seed(5)
    local one = pipeline(nil)
    flow.set_random_seed(5)
    assert.same(one, pipeline(3))
    local seen, different = {}, 0
    for i, image in ipairs(one) do
      local key = ("%.3f"):format(image[1] - (i - 1) * 25)
      if not seen[key] then different = different + 1 end
      seen[key] = true
    end
    assert.is_true(different > 30, different)
  end)

  it("resize and normalize, images of one or a batch", function()
    local resize, normalize = layers.Resizing(3, 4), layers.Normalization { axis = {} }
    normalize:adapt(flow.data.Dataset.from_tensor_slices(x):batch(7))
    assert.is_near(x:mean():item(), normalize.mean:item(), 1e-2)
    local ds = flow.data.Dataset.from_tensor_slices(x)
    local expected = resize(normalize(x))
    local single = collect(ds:map(function(image) return resize(normalize(image)) end))
    local batches = flow.data.Dataset.from_tensor_slices(x):batch(16):map(function(images) return resize(normalize(images)) end)
    local row = 0
    for images in batches:iter() do
      for i = 1, #images do
        row = row + 1
        assert.same({ 3, 4, 1 }, images[i].shape)
        local want = expected[row]:reshape({ 12 }):totable()
        for k = 1, 12 do
          assert.is_near(want[k], single[row][k], 1e-4)
          assert.is_near(want[k], images[i]:reshape({ 12 }):totable()[k], 1e-4)
        end
      end
    end
    assert.equal(40, row)
  end)
end)

describe("TFRecordDataset", function()
  it("takes more files than Lua has room for as values of a call", function()
    local path, list = support.folder() .. "/one.tfrecord", {}
    local writer = flow.data.TFRecordWriter(path)
    writer:write "a"
    writer:close()
    for i = 1, 9000 do list[i] = path end
    local count = 0
    for _ in flow.data.TFRecordDataset(list):iter() do count = count + 1 end
    assert.equal(9000, count)
  end)

  it("is parsed into shapes of whole numbers", function()
    assert.equal('parse_example: size 1 of feature "x" is the number 1.5, expected a whole number, or -1 for a list of any length',
      support.message_of(function() flow.data.parse_example { x = { "int64", { 1.5 } } } end))
  end)
end)

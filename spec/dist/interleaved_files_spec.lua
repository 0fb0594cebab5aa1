-- interleaved_files_spec.lua: files that interleave opens are divided over the workers by auto_shard_policy FILE, and by AUTO where there
-- is one for each, as in tf.data: each worker reads its own files, and all records are read once.
local clusters = require "spec.support.clusters"

local BEGIN = [[
  local flow = require "flow"
  local Dataset, Records = flow.data.Dataset, flow.data.TFRecordDataset
  local index = tonumber(os.getenv("TF_CONFIG"):match('"index":(%d)'))
  local strategy = flow.distribute.MultiWorkerMirroredStrategy()
  local base, paths, number = arg[0] .. index, {}, 0      -- in the folder of this script
  for file, records in ipairs { 5, 2, 4 } do
    paths[file] = ("%s-%d.tfrecord"):format(base, file)
    local writer = flow.data.TFRecordWriter(paths[file])
    for _ = 1, records do
      writer:write_example { number = number, file = file }
      number = number + 1
    end
    writer:close()
  end
  local function open(path) return Records(path):map(flow.data.parse_example { number = "int64", file = "int64" }) end
  -- What this worker has read, sorted: the numbers of files and of records.
  local function read(dataset, policy)
    local files, numbers, seen = {}, {}, {}
    for file, some in strategy:experimental_distribute_dataset(dataset:batch(4):with_options { auto_shard_policy = policy }):iter() do
      for i, n in ipairs(some:totable()) do
        numbers[#numbers + 1] = n
        local f = file:totable()[i]
        if not seen[f] then seen[f], files[#files + 1] = true, f end
      end
    end
    table.sort(files)
    table.sort(numbers)
    return table.concat(files, " "), table.concat(numbers, " ")
  end
]]

local function launch(script)
  local said, output, code = clusters.launch(script, { begin = BEGIN, launch = "--kill-after 1" })
  assert.equal(0, code, output)
  return said, output
end

describe("files that interleave opens", function()
  it("are divided: in their order, shuffled, by flat_map, with other stages around", function()
    local said, output = launch [[
      local files = Dataset.from_tensor_slices(paths)
      print("=", read(files:interleave(open), "FILE"))
      print("=", read(files:interleave(open, { cycle_length = 2 }), "AUTO"))
      print("=", read(files:flat_map(open), "AUTO"))
      math.randomseed(index)
      print("=", read(files:shuffle(3):interleave(open):shuffle(20), "FILE"))
      print("=", read(Dataset.list_files(base .. "-*.tfrecord"):interleave(open):prefetch(1), "FILE"))]]
    for i = 1, 5 do
      assert.equal("1 3\t0 1 2 3 4 7 8 9 10", said[0][i], output)
      assert.equal("2\t5 6", said[1][i], output)
    end
    assert.falsy(output:find("AUTO is DATA", 1, true), output)
  end)

  it("are read by all workers, which take their part of each batch, where they are too few or the policy is DATA", function()
    local said, output = launch [[
      local one = Dataset.from_tensor_slices { paths[3] }:interleave(open)
      print("=", read(one, "AUTO"))
      print("=", read(Dataset.from_tensor_slices(paths):flat_map(open), "DATA"))
      print("=", (select(2, pcall(read, one, "FILE"))))]]
    assert.same({ "3\t7 8", "1 2 3\t0 1 4 5 8 9" }, { said[0][1], said[0][2] }, output)
    assert.same({ "3\t9 10", "1 2 3\t2 3 6 7 10" }, { said[1][1], said[1][2] }, output)
    for worker = 0, 1 do
      assert.truthy(said[worker][3]:find("FILE cannot be, use DATA or OFF: interleave opens 1 file, not enough for 2 workers", 1, true),
        output)
    end
  end)

  it("are none where its function reads no files", function()
    local said, output = launch [[
      print("=", (select(2, pcall(read, Dataset.from_tensor_slices(paths):interleave(function()
        return Dataset.range(3):map(function(x) return x, x end)
      end), "FILE"))))]]
    for worker = 0, 1 do
      assert.truthy(said[worker][1]:find("begins with from_tensor_slices, which reads no list of files", 1, true), output)
    end
  end)
end)

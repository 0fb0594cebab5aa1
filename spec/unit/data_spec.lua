-- data_spec.lua: flow.data.Dataset: sources, stages, passes and positions as Lua sees them.
local support = require "spec.support.init"
local flow = require "flow"
local Dataset = flow.data.Dataset
local message_of = support.message_of

-- All elements of a pass: scalars as numbers, tensors as tables, texts as strings; a list for elements of several components.
local function all(source)
  local list = {}
  local function plain(value) return type(value) == "cdata" and (value.rank == 0 and value:item() or value:totable()) or value end
  local function add(...)
    local values = {}
    for i = 1, select("#", ...) do values[i] = plain((select(i, ...))) end
    list[#list + 1] = #values == 1 and values[1] or values
  end
  local iterator = flow.data.is(source) and source:iter() or source
  local function step(...)
    if (...) == nil then return end
    add(...)
    return step(iterator())
  end
  step(iterator())
  return list
end

local function counter(n, from)
  return function()
    local i = from or 0
    return function()
      if i < n then
        i = i + 1
        return i
      end
    end
  end
end

describe("a dataset", function()
  it("is made of tensors, lists and texts side by side", function()
    local ds = Dataset.from_tensor_slices { flow.tensor { { 1, 2 }, { 3, 4 } }, { "a", "" } }
    assert.same({ { { 1, 2 }, "a" }, { { 3, 4 }, "" } }, all(ds))
    assert.same({ { shape = { 2 }, dtype = "float32" }, { shape = {}, dtype = "string" } }, ds.element_spec)
    assert.equal("Dataset (float32 {2}, string {})", tostring(ds))
    assert.same({ { 1, 2 }, { 3, 4 } }, all(Dataset.from_tensor_slices { { 1, 2 }, { 3, 4 } }))
    assert.same({ "x", "y" }, all(Dataset.from_tensor_slices { "x", "y" }))
    assert.same({ 2, 4 }, all(Dataset.range(2, 6, 2)))
    assert.same({ "a", "" }, all(ds:map(function(_, text) return text end)))
    assert.same({ { "a", "" } }, all(ds:map(function(_, text) return text end):batch(2)))
    assert.same({ "a", "" }, all(ds:map(function(_, text) return text end):batch(2):unbatch()))
  end)

  it("has elements of as many components as a table has columns", function()
    local columns = {}
    for i = 1, 15 do columns[i] = flow.full({ 4 }, i):to("int64") end
    local ds = flow.data.Dataset.from_tensor_slices(columns):batch(2):map(function(...) return ... end)
    assert.equal(15, #ds.element_spec)
    for _, first in ipairs { ds, ds:cache(), ds:shuffle(2):prefetch(1) } do
      local count = 0
      for _, element in ipairs { { first:iter()() } } do
        for i, column in ipairs(element) do count = count + (column:totable()[2] == i and 1 or 0) end
      end
      assert.equal(15, count)
    end
    local inputs, parts = {}, {}
    for i = 1, 14 do
      inputs[i] = flow.Input({ 1 }, { dtype = "int64" })
      parts[i] = flow.layers.IntegerLookup { vocabulary = { 100, 200, i }, output_mode = "one_hot" }(inputs[i])
    end
    local model = flow.Model(inputs, flow.layers.Dense(1)(flow.layers.concatenate(parts)))
    model:compile { loss = "mse" }
    assert.equal(1, #model:fit(ds, { verbose = 0 }).history.loss)
  end)

  it("names what it was given wrongly", function()
    assert.truthy(message_of(function() Dataset.from_tensor_slices { flow.ones { 2 }, flow.ones { 3 } } end):find("has 3 rows", 1, true))
    assert.equal("dataset:batch: batch_size is a whole number from 1, got the number 0",
      message_of(function() Dataset.range(3):batch(0) end))
    assert.equal('dataset:batch: unknown option "drop"; did you mean "drop_remainder"?',
      message_of(function() Dataset.range(3):batch(2, { drop = true }) end))
    assert.truthy(message_of(function() Dataset.range(3):map(3) end):find("expected a function, got the number 3", 1, true))
    assert.truthy(message_of(function() return Dataset.range(3).class_names end):find("no class_names", 1, true))
    assert.truthy(message_of(function() return Dataset.range(3).cach end):find("Dataset has no field", 1, true))
    assert.truthy(message_of(function() Dataset.zip { Dataset.range(3), 3 } end):find("expected a Dataset, got the number 3", 1, true))
    assert.truthy(message_of(function() Dataset.range(3):repeat_():len() end):find("infinite", 1, true))
  end)

  it("knows its number of elements", function()
    assert.equal(3, Dataset.range(3):cardinality())
    assert.equal(2, Dataset.range(3):batch(2):len())
    assert.equal(-1, Dataset.range(3):repeat_():cardinality())
    assert.equal(-2, Dataset.range(3):filter(function(x) return x:gt(1) end):cardinality())
  end)

  it("passes on class names and file paths", function()
    local ds = Dataset.range(6)
    ds.class_names, ds.file_paths = { "a", "b" }, { "p" }
    local last = ds:shuffle(3):map(function(x) return x end):batch(2):prefetch(1):take(1):with_options { auto_shard_policy = "DATA" }
    assert.same({ "a", "b" }, last.class_names)
    assert.same({ "p" }, Dataset.zip { Dataset.range(3), last }.file_paths)
  end)

  it("keeps options", function()
    local ds = Dataset.range(3):with_options { auto_shard_policy = "data", deterministic = false }:batch(2)
    assert.same({ auto_shard_policy = "DATA", deterministic = false }, ds:options())
    assert.equal("HINT", ds:with_options { auto_shard_policy = flow.data.AutoShardPolicy.HINT }:options().auto_shard_policy)
    assert.truthy(message_of(function() ds:with_options { auto_shard_policy = "ALL" } end):find("AUTO, FILE, DATA, HINT or OFF", 1, true))
  end)

  it("lists files", function()
    local folder = support.file("b.txt", ""):match("^(.*)/")
    io.open(folder .. "/a.txt", "w"):close()
    assert.same({ folder .. "/a.txt", folder .. "/b.txt" }, all(Dataset.list_files(folder .. "/*.txt", { shuffle = false })))
    local found = all(Dataset.list_files(folder .. "/*.txt"))
    table.sort(found)
    assert.same({ folder .. "/a.txt", folder .. "/b.txt" }, found)
    assert.truthy(message_of(function() Dataset.list_files(folder .. "/*.png") end):find("no files match", 1, true))
    os.execute("rm -r " .. folder)
  end)

  it("combines stages", function()
    local ds = Dataset.range(7)
    assert.same({ { 0, 1 }, { 2, 3 }, { 4, 5 } }, all(ds:batch(2, { drop_remainder = true })))
    assert.same({ { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6 } }, all(ds:batch(2)))
    assert.same({ 2, 3 }, all(ds:skip(2):take(2)))
    assert.same({ 1, 4 }, all(ds:shard(3, 1)))
    assert.same({ 0, 1, 0, 1 }, all(ds:take(2):repeat_(2)))
    assert.same({ { 0, 3 }, { 1, 4 } }, all(Dataset.zip { ds:take(2), ds:skip(3) }))
    assert.same({ 0, 1, 5, 6 }, all(ds:take(2):concatenate(ds:skip(5))))
    assert.same({ { 5, 0 }, { 6, 1 } }, all(ds:take(2):enumerate(5)))
    assert.same({ { 0, 1, 2 }, { 3, 4, 5 }, { 6 } }, all(ds:batch(2):rebatch(3)))
    assert.same({ 0, 1 }, all(ds:apply(function(d) return d:take(2) end)))
  end)
end)

describe("cache", function()
  it("keeps the first complete pass and its order", function()
    local ds = Dataset.range(20):shuffle(20, { seed = 1 }):map(function(x) return x end):cache()
    local it = ds:iter()
    it()
    it:close()                                   -- a pass that stops early keeps nothing
    local first = all(ds)
    assert.same(first, all(ds))
    assert.same(first, all(ds:repeat_(2):skip(20)))
    assert.equal(20, ds:stats()[1].elements)
    assert.equal(0, ds:stats()[2].elements)      -- nothing was computed again
  end)

  it("is complete when all elements were taken, although nobody asked for the end, as fit does", function()
    local ds = Dataset.range(5):map(function(x) return x end):cache()
    local it = ds:iter()
    for _ = 1, 5 do it() end
    it:close()
    all(ds)
    assert.equal(0, ds:stats()[2].elements)
  end)

  it("keeps positions exact, also where it has to be filled again", function()
    local function pipeline() return Dataset.range(9):shuffle(9, { seed = 1 }):cache():shuffle(4, { seed = 2 }):repeat_(3) end
    local expected = all(pipeline())
    for at = 0, 27, 4 do
      local it = pipeline():iter()
      for _ = 1, at do it() end
      assert.same({ unpack(expected, at + 1) }, all(pipeline():iter():restore(it:save())))
    end
  end)
end)

describe("cache in a file", function()
  it("is filled by the first complete pass and read by every later Dataset", function()
    local path = support.file("cache", "")
    os.remove(path)
    local it = Dataset.range(6):shuffle(6):cache(path):iter()
    it()
    it:close()                                   -- a pass that stops early leaves no file
    assert.is_nil(io.open(path))
    local first = all(Dataset.range(6):shuffle(6):cache(path))
    assert.same(first, all(Dataset.range(6):shuffle(6):cache(path)))
    assert.same(first, all(Dataset.range(60):cache(path)))
    assert.truthy(support.message_of(function() all(Dataset.range(6):batch(2):cache(path)) end):find("filled by another pipeline", 1, true))
    assert.truthy(support.message_of(function() Dataset.range(6):cache(3) end):find("a path is a string", 1, true))
  end)
end)

describe("padded_batch", function()
  it("fills rows up", function()
    local ds = Dataset.from_generator(function()
      local n = 0
      return function()
        n = n + 1
        if n <= 3 then return flow.ones { n }, n end
      end
    end, { output_signature = { { shape = { -1 } }, { shape = {} } } })
    assert.same({ { { { 1, 0 }, { 1, 1 } }, { 1, 2 } }, { { { 1, 1, 1 } }, { 3 } } }, all(ds:padded_batch(2)))
    assert.same({ { { 1, 7, 7, 7 }, { 1, 1, 7, 7 } }, { 1, 2 } },
      all(ds:padded_batch(2, { padded_shapes = { { 4 }, {} }, padding_values = 7, drop_remainder = true }))[1])
    assert.truthy(message_of(function() all(ds:padded_batch(3, { padded_shapes = { { 2 }, {} } })) end):find("it is padded to 2", 1, true))
  end)
end)

describe("map and filter", function()
  it("trace the function once and run it on threads", function()
    local calls = 0
    local ds = Dataset.range(20):map(function(x)
      calls = calls + 1
      return x * x, x
    end, { num_parallel_calls = flow.AUTOTUNE })
    for _ = 1, 2 do
      local found = all(ds)
      assert.equal(20, #found)
      for i = 0, 19 do assert.same({ i * i, i }, found[i + 1]) end
    end
    assert.equal(1, calls)
    assert.same({ 1, 3, 5 }, all(Dataset.range(7):filter(function(x) return (x % 2):eq(1) end)))
  end)

  it("take batches of any number of rows", function()
    local ds = Dataset.from_tensor_slices(flow.arange(14):reshape { 7, 2 }):batch(3):map(function(x) return x:sum(2), x:mean() end)
    assert.same({ shape = { -1 }, dtype = "int64" }, ds.element_spec[1])
    assert.same({ { { 1, 5, 9 }, 2.5 }, { { 13, 17, 21 }, 8.5 }, { { 25 }, 12.5 } }, all(ds))
  end)

  it("capture tensors, layers and numbers", function()
    local weights = flow.tensor { 10, 20 }
    local rescale = flow.layers.Rescaling(1 / 2)
    local ds = Dataset.from_tensor_slices(flow.tensor { { 1, 2 }, { 3, 4 } })
    assert.same({ { { 10, 40 }, 7, { 0.5, 1 } }, { { 30, 80 }, 7, { 1.5, 2 } } },
      all(ds:map(function(x) return x * weights, 7, rescale(x) end)))
  end)

  it("draw other random numbers for every element and pass, the same for every number of threads", function()
    local function passes(calls)
      flow.set_random_seed(3)
      local ds = Dataset.range(4):map(function(x) return flow.random.uniform { 2 } + x * 0 end, { num_parallel_calls = calls })
      return { all(ds), all(ds) }
    end
    local found = passes(nil)
    assert.are_not.same(found[1][1], found[1][2])
    assert.are_not.same(found[1], found[2])
    assert.same(found, passes(3))
    require("flow.tensor.random").global_seed = false
  end)

  it("pass on what has no known size, and say what to do when a function looks at it", function()
    local ds = Dataset.from_generator(function()
      local i = 0
      return function()
        i = i + 1
        if i <= 3 then return flow.ones { i, i + 1 }, i end
      end
    end, { output_signature = { { shape = { -1, -1 }, dtype = "float32" }, { shape = {}, dtype = "int64" } } })
    assert.same({ { { { 1, 1 } }, 10 }, { { { 1, 1, 1 }, { 1, 1, 1 } }, 20 } }, all(ds:map(function(x, y) return x, y * 10 end):take(2)))
    assert.same({ { { { 1, 1, 1 }, { 1, 1, 1 } }, 2 } }, all(ds:filter(function(_, y) return y:eq(2) end)))
    local looks = {
      function(x) return x + 1 end, function(x) return 2 * x end, function(x) return -x end, function(x) return x:sum() end,
      function(x) return flow.exp(x) end, function(x) return flow.stack { x, x } end, function(x) return x[1] end,
      function(x) return x.shape end,
    }
    for n, look in ipairs(looks) do      -- they are called with the values
      local made, i = ds:map(look), 0
      for y in made:iter() do
        i = i + 1
        assert.same((n == 8 and flow.tensor(i) or look(flow.ones { i, i + 1 })):totable(), y:totable())
      end
      assert.equal(3, i)
    end
    assert.same({ { shape = { -1, -1 }, dtype = "float32" } }, ds:map(looks[1]).element_spec)
    assert.same({ { { { 1, 1, 1 }, { 1, 1, 1 } }, 2 } }, all(ds:filter(function(x) return x:sum():eq(6) end)))
    local text = message_of(function() ds:map(function(x) return x:nothing() end) end)
    assert.truthy(text:find("no field \"nothing\"", 1, true), text)
    assert.truthy(text:find("it cannot be traced: component 1 is float32 {None, None}", 1, true), text)
  end)

  it("say why a function cannot be traced", function()
    local ds = Dataset.range(3)
    assert.truthy(message_of(function() ds:map(function(x) return x:nothing() end) end)
      :find("map: the function cannot be traced: a tensor has no field \"nothing\"", 1, true))
    assert.truthy(message_of(function() ds:map(function() return {} end) end):find("returned nothing", 1, true))
    assert.truthy(message_of(function() ds:map(function() return "text" end) end):find("result 1 of the function is the string", 1, true))
    assert.truthy(message_of(function() ds:filter(function(x) return x end) end):find("one scalar of dtype bool is needed", 1, true))
    local texts = Dataset.from_tensor_slices { "a" }
    assert.truthy(message_of(function() texts:map(function(t) return t.shape end) end):find("a text has no value", 1, true))
    assert.equal(0, flow.fn and tonumber(require("flow.ffi").C.flow_trace_depth(require("flow.ffi").context)))
  end)
end)

describe("TextLineDataset", function()
  it("gives the lines of its files, without what ends them", function()
    local a, b = support.file("a.txt", "one\r\n\ntwo\n"), support.file("b.txt", "three")
    assert.same({ "one", "", "two", "three" }, all(flow.data.TextLineDataset { a, b }))
    assert.same({ "three" }, all(flow.data.TextLineDataset(b)))
    assert.same({ "one", "three", "", "two" },
      all(Dataset.from_tensor_slices { a, b }:interleave(flow.data.TextLineDataset, { cycle_length = 2 })))
    assert.matches("^TextLineDataset: n%.t cannot be read: No such [^:]*$", message_of(function() all(flow.data.TextLineDataset "n.t") end))
    assert.matches("unpack the file before", message_of(function()
      local lines = flow.data.TextLineDataset(a, { compression_type = "GZIP" })
      return lines
    end))
    assert.matches("flow.data.parse_example", message_of(function() return flow.io.FixedLenFeature end))
  end)
end)

describe("a generator", function()
  it("is called again for every pass, below every stage", function()
    local ds = Dataset.from_generator(counter(4))
    for _, source in ipairs { ds, ds:prefetch(2), ds:map(function(x) return x end, { num_parallel_calls = 2 }) } do
      assert.same({ 1, 2, 3, 4 }, all(source))
      assert.same({ 1, 2, 3, 4 }, all(source))
    end
    assert.same({ 1, 2, 3, 4, 1, 2 }, all(ds:repeat_():take(6)))
    assert.same({ { 1, 1 }, { 2, 2 } }, all(Dataset.zip { ds, ds }:take(2)))
  end)

  it("gives several values, texts and tables, as a generic for does", function()
    local ds = Dataset.from_generator(function() return ipairs { "a", "b" } end,
      { output_signature = { { shape = {}, dtype = "int32" }, { dtype = "string" } } })
    assert.same({ { 1, "a" }, { 2, "b" } }, all(ds))
    local rows = { { 1 }, { 2, 3 } }
    local n = 0
    ds = Dataset.from_generator(function() return function() n = n + 1 return rows[n] end end,
      { output_signature = { shape = { -1 }, dtype = "float64" } })
    assert.same({ { 1 }, { 2, 3 } }, all(ds))
  end)

  it("has the signature that output_types and output_shapes, or TensorSpecs, say", function()
    local function rows() return ipairs { { 1 }, { 2, 3 } } end
    local shapes = { output_types = { "int32", "float32" }, output_shapes = { {}, { -1 } } }
    for _, signature in ipairs { shapes, { output_signature = { flow.TensorSpec({}, "int32"), flow.TensorSpec { shape = { -1 } } } } } do
      local ds = Dataset.from_generator(rows, signature)
      assert.equal("Dataset (int32 {}, float32 {None})", tostring(ds))
      assert.same({ { 1, { 1 } }, { 2, { 2, 3 } } }, all(ds))
    end
    assert.equal("Dataset (int64 {})", tostring(Dataset.from_generator(counter(3), { output_types = "int64", output_shapes = {} })))
    assert.matches("output_shapes go with output_types", message_of(function() Dataset.from_generator(rows, { output_shapes = {} }) end))
  end)

  it("passes on its errors", function()
    local ds = Dataset.from_generator(function()
      local i = 0
      return function()
        i = i + 1
        if i == 2 then error("it broke", 0) end
        return i
      end
    end)
    local it = ds:prefetch(1):iter()
    assert.equal(1, it():item())
    assert.truthy(message_of(function() it() end):find("it broke", 1, true))
    local wrong = Dataset.from_generator(function() return function() return "text" end end, { output_signature = { dtype = "int32" } })
    assert.truthy(message_of(function() wrong:iter()() end):find("from_generator: expected a tensor", 1, true))
    local n = 0
    local growing = Dataset.from_generator(function() return function() n = n + 1 return flow.ones { n } end end):iter()
    assert.equal("from_generator: component 1 of an element is float32 {2}, expected float32 {1}; sizes that differ are -1 in the " ..
      "output_signature", message_of(function() growing() end))
  end)
end)

describe("interleave", function()
  it("calls Lua with values", function()
    local ds = Dataset.from_tensor_slices { "ab", "c" }:interleave(function(text)
      return Dataset.range(#text):map(function(i) return i + 10 * #text end)
    end, { cycle_length = 2 })
    assert.same({ 20, 10, 21 }, all(ds))
    assert.same({ 0, 0, 1 }, all(Dataset.range(3):flat_map(function(i) return Dataset.range(i:item()) end)))
    assert.truthy(message_of(function() Dataset.range(3):interleave(function(i) return i end) end):find("expected a Dataset", 1, true))
  end)
end)

describe("what Lua makes of a data set", function()
  it("is one element, or one value", function()
    local count = 0
    for x, y in Dataset.from_tensors { flow.ones { 2, 3 }, flow.tensor(4) }:iter() do
      assert.same({ 2, 3 }, x.shape)
      assert.same({ 4, 0 }, { y:item(), y.rank })
      count = count + 1
    end
    assert.equal(1, count)
    assert.equal(15, Dataset.range(5):reduce(5, function(sum, x) return sum + x:item() end))
    assert.equal(9000, Dataset.range(9000):reduce(0, function(n) return n + 1 end))
    assert.equal(7, Dataset.range(0):reduce(7, function() return 1 end))
  end)

  it("names what is not there", function()
    assert.equal('flow.data.Dataset has no "from_tensor_slice"; did you mean "from_tensor_slices"?',
      message_of(function() return Dataset.from_tensor_slice end))
    assert.equal("a data set is not a function: loop over it by `for x, y in ds:iter() do`",
      message_of(function() for _ in Dataset.range(3) do end end))
    assert.equal('flow.config has no "set_thread"; did you mean "set_threads"?', message_of(function() return flow.config.set_thread end))
    assert.equal('flow.models has no "clone"; did you mean "clone_model"?', message_of(function() return flow.models.clone end))
  end)
end)

describe("positions", function()
  it("are restored exactly, in the middle of an epoch", function()
    local function pipeline()
      return Dataset.range(20):shuffle(8, { seed = 4 }):map(function(x) return x, flow.random.uniform { 1 } end, { num_parallel_calls = 2 })
        :repeat_(3):batch(3):prefetch(2)
    end
    local expected = all(pipeline())
    for at = 0, #expected, 5 do
      local first = pipeline():iter()
      for _ = 1, at do first() end
      local position = first:save()
      first:close()
      local rest = all(pipeline():iter():restore(position))
      assert.equal(#expected - at, #rest)
      for i = 1, #rest do assert.same(expected[at + i][1], rest[i][1]) end
    end
  end)

  it("are restored after every element of every stage that makes other elements out of those that come", function()
    local function rows(n) return Dataset.range(n):shuffle(n, { seed = 3 }) end
    local function ragged(n)
      return Dataset.from_generator(function()
        local i = 0
        return function()
          i = i + 1
          if i <= n then return flow.ones { i % 4 } * i end
        end
      end, { output_signature = { shape = { -1 }, dtype = "float32" } })
    end
    local function noise(x) return x, flow.random.uniform { 2 } end
    local pipelines = {
      unbatch = function() return rows(11):batch(4):unbatch() end,
      ["unbatch of whole batches"] = function() return rows(11):batch(3, { drop_remainder = true }):repeat_(2):unbatch():batch(2) end,
      rebatch = function() return rows(11):batch(4):rebatch({ 3, 0, 2 }) end,
      padded_batch = function() return ragged(9):padded_batch(2) end,
      ["padded_batch of drawn rows"] = function() return ragged(9):shuffle(5, { seed = 2 }):padded_batch(4, { drop_remainder = true }) end,
      filter = function() return rows(20):filter(function(x) return (x % 3):eq(1) end):repeat_(2) end,
      ["filter after batch"] = function() return rows(20):batch(3):filter(function(x) return x:sum():gt(25) end):unbatch() end,
      ["random map"] = function() return rows(7):map(noise):repeat_(2) end,
      ["random map on threads"] = function() return rows(7):repeat_(2):map(noise, { num_parallel_calls = 3 }):batch(2):prefetch(1) end,
      ["random map after filter"] = function() return rows(9):filter(function(x) return x:gt(2) end):map(noise):batch(2):unbatch() end,
      ["random filter"] = function() return rows(30):filter(function(x) return flow.random.uniform({}):gt(0.5) end) end,
    }
    for name, pipeline in pairs(pipelines) do
      local function fresh()      -- as another process makes it
        flow.set_random_seed(5)
        return pipeline()
      end
      local ds = fresh()
      all(ds)                     -- the second pass draws what a first one does not
      local whole = ds:iter()
      local start = whole:save()
      local expected = all(whole)
      assert.is_true(#expected > 1, name)
      for at = 0, #expected do
        local first = fresh():iter():restore(start)
        for _ = 1, at do first() end
        local position = first:save()
        first:close()
        assert.same({ name, unpack(expected, at + 1) }, { name, unpack(all(fresh():iter():restore(position))) })
      end
    end
    require("flow.tensor.random").global_seed = false
  end)

  it("are restored for generators and interleave", function()
    local ds = Dataset.from_generator(counter(9)):interleave(function(x) return Dataset.range(x:item()) end,
      { cycle_length = 2, block_length = 2 })
    local expected = all(ds)
    local it = ds:iter()
    for _ = 1, 7 do it() end
    local rest = all(ds:iter():restore(it:save()))
    assert.same({ unpack(expected, 8) }, rest)
  end)

  it("of another pipeline are refused", function()
    local position = Dataset.range(3):iter():save()
    assert.truthy(message_of(function() Dataset.range(4):iter():restore(position) end):find("another pipeline", 1, true))
    assert.truthy(message_of(function() Dataset.range(4):iter():restore("?") end):find("not a saved position", 1, true))
  end)
end)

describe("a pass", function()
  it("tells what its stages did", function()
    local ds = Dataset.range(10):batch(5)
    assert.same({}, ds:stats())
    all(ds)
    local stats = ds:stats()
    assert.equal("batch", stats[1].name)
    assert.equal(2, stats[1].elements)
    assert.equal("range", stats[2].name)
    assert.equal(10, stats[2].elements)
  end)

  it("may be left, closed and forgotten", function()
    local ds = Dataset.range(1000):map(function(x) return x + 1 end, { num_parallel_calls = 2 }):prefetch(4)
    for x in ds:iter() do
      if x:item() == 3 then break end
    end
    local it = ds:iter()
    it()
    it:close()
    assert.is_nil(it())
    it:close()
    collectgarbage()
    collectgarbage()
  end)
end)

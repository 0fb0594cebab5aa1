-- random_pipelines_spec.lua: random chains of stages of a data set give what the same chain of plain lists gives: the elements in their
-- order, the length where it is known beforehand, all of it again in a second pass, and the rest from wherever an iterator's position was
-- saved. FLOW_CASES=10000 tries more chains; a failure names its number and its stages.
local support = require "spec.support.init"
local flow = require "flow"
local Dataset = flow.data.Dataset

local FIRST, LAST = (require "spec.support.case_numbers")(150)

local state
local function random(from, to)      -- Park and Miller's generator
  state = state * 48271 % 2147483647
  return from + state % (to - from + 1)
end

local function range(n)
  local list = {}
  for i = 1, n do list[i] = i - 1 end
  return list
end

local function mapped(list, f)
  local new = {}
  for i, x in ipairs(list) do new[i] = f(x) end
  return new
end

local function part(list, from, to)
  local new = {}
  for i = math.max(from, 1), math.min(to, #list) do new[#new + 1] = list[i] end
  return new
end

local function joined(lists)
  local new = {}
  for _, list in ipairs(lists) do
    for _, x in ipairs(list) do new[#new + 1] = x end
  end
  return new
end

local function batches(list, n, drop)
  local new = {}
  for i = 1, #list, n do
    local batch = part(list, i, i + n - 1)
    if #batch == n or not drop then new[#new + 1] = batch end
  end
  return new
end

-- TensorFlow's order (InterleaveDatasetOp::GetNextInternal): cycle_length places, block_length elements of each in turn. A place whose
-- source has ended is left for the next one, and gets another source when its turn comes again.
local function interleaved(sources, cycle, block)
  local new, open, count, following, at, taken = {}, {}, 0, 1, 1, 0
  local function advance() at, taken = at % cycle + 1, 0 end
  while count > 0 or following <= #sources do
    local source = open[at]
    if not source then
      if following <= #sources then open[at], count, following = { list = sources[following], at = 1 }, count + 1, following + 1
      else advance() end
    elseif source.at > #source.list then
      open[at], count = nil, count - 1
      advance()
    else
      new[#new + 1] = source.list[source.at]
      source.at, taken = source.at + 1, taken + 1
      if taken == block then advance() end
    end
  end
  return new
end

-- The groups of `size` elements with the same rest by `keys`, as they become full, and those that are left by their keys.
local function groups(list, keys, size)
  local new, open = {}, {}
  for _, x in ipairs(list) do
    local group = open[x % keys] or {}
    open[x % keys] = group
    group[#group + 1] = x
    if #group == size then
      new[#new + 1] = group
      open[x % keys] = nil
    end
  end
  for key = 0, keys - 1 do new[#new + 1] = open[key] end
  return new
end

-- Elements of the list in the order of `choices`: 0 is the list itself, 1 its part from `skipped` + 1 on. The end of one ends all.
local function chosen(list, choices, skipped)
  local sources, new = { list, part(list, skipped + 1, #list) }, {}
  local at = { 0, 0 }
  for _, number in ipairs(choices) do
    at[number + 1] = at[number + 1] + 1
    local x = sources[number + 1][at[number + 1]]
    if x == nil then break end
    new[#new + 1] = x
  end
  return new
end

local folders = {}      -- of the chain that is tested
local function new_folder()
  folders[#folders + 1] = support.folder()
  return folders[#folders]
end

local function sum_of(list)
  local total = 0
  for _, x in ipairs(list) do total = total + x end
  return total
end

-- Stages of numbers: each gives the data set, the list and what it is called.
local NUMBERS = {
  function(ds, list)
    local calls = random(0, 3)
    return ds:map(function(x) return x * 2 + 1 end, calls > 0 and { num_parallel_calls = calls } or nil),
      mapped(list, function(x) return x * 2 + 1 end), "map"
  end,
  function(ds, list)
    local kept = {}
    for _, x in ipairs(list) do
      if x % 3 ~= 0 then kept[#kept + 1] = x end
    end
    return ds:filter(function(x) return (x % 3):ne(0) end), kept, "filter"
  end,
  function(ds, list)
    local shards = random(1, 4)
    local index, kept = random(0, shards - 1), {}
    for i = index + 1, #list, shards do kept[#kept + 1] = list[i] end
    return ds:shard(shards, index), kept, ("shard(%d, %d)"):format(shards, index)
  end,
  function(ds, list)
    local n = random(0, 5)
    return ds:concatenate(Dataset.range(n)), joined { list, range(n) }, ("concatenate(%d)"):format(n)
  end,
  function(ds, list)
    local n = random(0, 3)
    return ds:flat_map(function(x) return Dataset.range(n):map(function(y) return x + y * 100 end) end),
      joined(mapped(list, function(x) return mapped(range(n), function(y) return x + y * 100 end) end)), ("flat_map(%d)"):format(n)
  end,
  function(ds, list)
    local n, cycle, block = random(1, 4), random(1, 4), random(1, 3)
    return ds:interleave(function(x) return Dataset.range(n):map(function(y) return x + y * 100 end) end,
        { cycle_length = cycle, block_length = block }),
      interleaved(mapped(list, function(x) return mapped(range(n), function(y) return x + y * 100 end) end), cycle, block),
      ("interleave(%d, %d, %d)"):format(n, cycle, block)
  end,
  function(ds, list)
    local n, drop = random(1, 5), random(0, 1) == 1
    return ds:batch(n, { drop_remainder = drop }), batches(list, n, drop), ("batch(%d, %s)"):format(n, tostring(drop)), true
  end,
  function(ds, list)
    local n, shift = random(1, 4), random(1, 4)
    local new = {}
    for i = 1, #list, shift do
      local window = part(list, i, i + n - 1)
      if #window == n then new[#new + 1] = window end
    end
    return ds:window(n, { shift = shift, drop_remainder = true }):flat_map(function(w) return w:batch(n) end), new,
      ("window(%d, %d)"):format(n, shift), true
  end,
  function(ds, list)
    local new, sum = {}, 0
    for i, x in ipairs(list) do
      sum = sum + x
      new[i] = sum
    end
    return ds:scan(flow.tensor(0, { dtype = "int64" }), function(s, x) return s + x, s + x end), new, "scan"
  end,
  function(ds, list)
    local limit, new = random(1, 40), {}
    for _, x in ipairs(list) do
      if x >= limit then break end
      new[#new + 1] = x
    end
    return ds:take_while(function(x) return x:lt(limit) end), new, ("take_while(%d)"):format(limit)
  end,
  function(ds, list)
    local seen, new = {}, {}
    for _, x in ipairs(list) do
      if not seen[x] then new[#new + 1] = x end
      seen[x] = true
    end
    return ds:unique(), new, "unique"
  end,
  function(ds, list)
    local keys, size, n = random(1, 3), random(1, 4), random(1, 3)
    local new = {}
    for _, group in ipairs(groups(list, keys, size)) do new = joined { new, batches(group, n) } end
    return ds:group_by_window(function(x) return x % keys end, function(_, group) return group:batch(n) end, { window_size = size }), new,
      ("group_by_window(%d, %d, %d)"):format(keys, size, n), true
  end,
  function(ds, list)
    local new, start = {}, random(0, 3)
    for i, x in ipairs(list) do new[i] = (start + i - 1) * 1000 + x end
    return ds:enumerate(start):map(function(i, x) return i * 1000 + x end), new, ("enumerate(%d)"):format(start)
  end,
  function(ds, list)
    local low, size = random(1, 9), random(1, 3)
    local batched, buckets = {}, { {}, {} }
    for _, x in ipairs(list) do
      local bucket = buckets[x % 10 < low and 1 or 2]
      bucket[#bucket + 1] = x
      if #bucket == size then
        batched[#batched + 1] = part(bucket, 1, size)
        for i = 1, size do bucket[i] = nil end
      end
    end
    for _, bucket in ipairs(buckets) do batched[#batched + 1] = #bucket > 0 and bucket or nil end
    return ds:bucket_by_sequence_length(function(x) return x % 10 end, { low }, { size, size }), batched,
      ("bucket_by_sequence_length(%d, %d)"):format(low, size), true
  end,
}

local BATCHES = {
  function(ds, list) return ds:unbatch(), joined(list), "unbatch", false end,
  function(ds, list)
    local n = random(1, 6)
    return ds:rebatch(n), batches(joined(list), n), ("rebatch(%d)"):format(n)
  end,
  function(ds, list)
    return ds:map(function(x) return x + 1 end), mapped(list, function(batch) return mapped(batch, function(x) return x + 1 end) end), "map"
  end,
  function(ds, list) return ds:flat_map(function(x) return Dataset.from_tensor_slices { x } end), joined(list), "flat_map", false end,
  function(ds, list)
    return ds:window(1):flat_map(function(window) return window:batch(1) end):unbatch(), list, "window(1)"
  end,
  function(ds, list)
    local total = 0
    return ds:scan(flow.tensor(0, { dtype = "int64" }), function(s, x) return s + x:sum(), s + x:sum() end), mapped(list, function(batch)
      total = total + sum_of(batch)
      return total
    end), "scan of sums", false
  end,
  function(ds, list)
    local limit, new = random(1, 80), {}
    for _, batch in ipairs(list) do
      if sum_of(batch) >= limit then break end
      new[#new + 1] = batch
    end
    return ds:take_while(function(x) return x:sum():lt(limit) end), new, ("take_while(%d)"):format(limit)
  end,
  function(ds, list)
    local kept = {}
    for _, batch in ipairs(list) do kept[#kept + 1] = sum_of(batch) % 2 == 0 and batch or nil end
    return ds:filter(function(x) return (x:sum() % 2):eq(0) end), kept, "filter"
  end,
}

-- Stages of any elements.
local ANY = {
  function(ds, list)
    local n = random(0, 12)
    return ds:take(n), part(list, 1, n), ("take(%d)"):format(n)
  end,
  function(ds, list)
    local n = random(0, 6)
    return ds:skip(n), part(list, n + 1, #list), ("skip(%d)"):format(n)
  end,
  function(ds, list)
    local n, lists = random(0, 3), {}
    for i = 1, n do lists[i] = list end
    return ds:repeat_(n), joined(lists), ("repeat_(%d)"):format(n)
  end,
  function(ds, list) return ds:prefetch(random(1, 3)), list, "prefetch" end,
  function(ds, list) return ds:cache(), list, "cache" end,
  function(ds, list) return ds:snapshot(new_folder()), list, "snapshot" end,
  function(ds, list)
    local folder = new_folder()
    ds:save(folder)
    return Dataset.load(folder), list, "save:load"
  end,
  function(ds, list)
    local choices, skipped = {}, random(0, 3)
    for i = 1, random(1, 9) do choices[i] = random(0, 1) end
    local numbers = Dataset.from_tensor_slices { flow.tensor(choices, { dtype = "int64" }) }
    return Dataset.choose_from_datasets({ ds, ds:skip(skipped) }, numbers), chosen(list, choices, skipped), "choose_from_datasets"
  end,
}

local function elements(iterator)
  local list = {}
  for x in iterator do
    list[#list + 1] = #x.shape == 0 and x:item() or x:totable()
    assert.equal("int64", x.dtype)
  end
  return list
end

local function check(seed)
  state = seed * 7919 + 1
  for _ = 1, 5 do random(1, 2) end
  local n = random(0, 14)
  local ds, list, names, is_batches = Dataset.range(n), range(n), { ("range(%d)"):format(n) }, false
  for _ = 1, random(1, 6) do
    local kind = random(1, 2) == 1 and ANY or is_batches and BATCHES or NUMBERS
    local name, becomes
    ds, list, name, becomes = kind[random(1, #kind)](ds, list)
    if becomes ~= nil then is_batches = becomes end
    names[#names + 1] = name
    if #list > 400 then break end
  end
  local what = table.concat(names, ":")
  for pass = 1, 2 do assert.same(list, elements(ds:iter()), what .. ", pass " .. pass) end
  local cardinality = ds:cardinality()
  if cardinality ~= -2 then assert.equal(#list, cardinality, what .. ": its length") end
  local iterator, before = ds:iter(), random(0, #list)
  for _ = 1, before do iterator:next() end
  local again = ds:iter()
  again:restore(iterator:save())
  assert.same(part(list, before + 1, #list), elements(again), ("%s: restored after %d"):format(what, before))
end

describe("a random chain of stages", function()
  it("gives what the chain of plain lists gives", function()
    local failures = {}
    for seed = FIRST, LAST do
      local ok, problem = pcall(check, seed)
      while #folders > 0 do flow.io.rmtree(table.remove(folders)) end
      if not ok then
        failures[#failures + 1] = ("%d: %s"):format(seed, tostring(type(problem) == "table" and problem.message or problem))
      end
      if #failures == 10 then break end
    end
    assert.equal("", table.concat(failures, "\n"))
  end)
end)

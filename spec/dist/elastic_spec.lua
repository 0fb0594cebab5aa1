-- elastic_spec.lua: training goes on with fewer workers, and with more, and every bit is as if nothing had been: weights, the optimizer's
-- slots and History are those of a run in one process. spec/dist/recovery.lua is what they train; nobody starts a worker again but this
-- spec, at once or when worker:0 is at some batch.
local support = require "spec.support.init"
local processes = require "spec.support.processes"

local function digest_of(text) return text:match("digest (%d+ of %d+ values)") end

local references = {}

-- What one process leaves that does it all.
local function reference(script, arguments)
  local key = script .. arguments
  if not references[key] then
    local text, code = support.run(("env FLOW_THREADS=1 FLOWLUA_PATH=%slua timeout -k 5 60 %s %sspec/dist/%s --folder %s %s")
      :format(support.root, support.program, support.root, script, support.folder(), arguments))
    assert.equal(0, code, text)
    references[key] = assert(digest_of(text), text)
  end
  return references[key]
end

-- A run of workers with these lives (processes.lua). kills: which of them end, where. Returns all that was said, and how many were there at
-- the end. script: recovery.lua, if it is not told.
local function train(lives, arguments, kills, environment, script)
  script = script or "recovery.lua"
  local wanted, there = reference(script, arguments), 0
  local said, all = processes.run(lives, ("%s %sspec/dist/%s --folder {folder} %s %s"):format(support.program, support.root, script,
    arguments, kills), "FLOW_MIN_WORKERS=1 FLOW_SHRINK_AFTER=0.2 " .. (environment or ""))
  for worker, list in ipairs(said) do
    for life, one in ipairs(list) do
      local digest = digest_of(one.text)
      if digest then
        assert.equal(wanted, digest, all)
        there = there + 1
      end
      local killed = one.code == 137 and kills:find(("worker:%d@"):format(worker - 1), 1, true)
      assert.truthy(killed or one.code == 0, ("worker:%d, life %d\n%s"):format(worker - 1, life, all))
    end
  end
  assert.truthy(digest_of(said[1][#said[1]].text), all)
  return all, there
end

local function expect(text, ...)
  for _, part in ipairs { ... } do assert.truthy(text:find(part, 1, true), part .. "\n" .. text) end
end

describe("workers that never come back", function()
  for _, case in ipairs {
    { "--shards 4", "worker:2@5", 3 }, { "--shards 8", "worker:3@12", 3 }, { "--shards 4", "worker:1@7,worker:3@7", 2 },
    { "--shards 8 --data tensors", "worker:1@3,worker:2@10,worker:3@17", 1 }, { "--shards 4 --data endless", "worker:2@6,worker:1@13", 2 },
    { "--shards 4", "worker:2@test", 3 }, { "--shards 4 --fits 3 --models 2 --epochs 2", "worker:1@8,worker:3@20,worker:2@30", 1 },
    { "--shards 4 --callbacks true", "worker:2@5", 3 },
  } do
    local arguments, kills, left = unpack(case)
    it(("are done without, and no bit differs: %s, %s"):format(arguments, kills), function()
      local text, there = train({ { "" }, { "" }, { "" }, { "" } }, arguments, "--kill " .. kills)
      assert.equal(left, there, text)
      expect(text, ("training goes on with %d of 4 workers, from the newest state: worker:0"):format(left))
    end)
  end

  it("are done without where the workers share no memory", function()
    local text = train({ { "" }, { "" } }, "--shards 4", "--kill worker:1@9", "FLOW_SHARED_MEMORY=0")
    expect(text, "training goes on with 1 of 2 workers, from the newest state: worker:0 (4 shards, 4 on each)")
  end)

  it("leave their shards to the others, of whom one may have more", function()
    local text = train({ { "" }, { "" }, { "" }, { "" } }, "--shards 4", "--kill worker:1@4")
    expect(text, "training goes on with 3 of 4 workers, from the newest state: worker:0, worker:2, worker:3 (4 shards, 1 or 2 on each)")
  end)

  it("make room for one that stood by, since there are fewer shards than workers; another ends well without a part", function()
    local text, there = train({ { "" }, { "" }, { "batch@2" }, { "batch@2" } }, "--shards 2 --epochs 16", "--kill worker:1@25")
    assert.equal(2, there, text)
    expect(text, "stands by: 2 of 4 workers train, since there are 2 shards",
      "training goes on with 2 of 4 workers, from the newest state: worker:0, worker:")
  end)
end)

describe("workers that come later", function()
  for _, case in ipairs {
    { "one that was killed", { { "" }, { "" }, { "", "batch@9" }, { "" } }, "--kill worker:2@5 --await 4", "--shards 4" },
    { "one that was killed, in another epoch", { { "" }, { "", "batch@15" } }, "--kill worker:1@5 --await 2", "--shards 8" },
    { "two that were killed", { { "" }, { "", "batch@12" }, { "" }, { "", "batch@9" } }, "--kill worker:1@4,worker:3@7 --await 4",
      "--shards 8 --data tensors" },
    { "two that start late", { { "" }, { "" }, { "batch@3" }, { "batch@5" } }, "--await 4", "--shards 4" },
    { "all but the chief", { { "" }, { "batch@2" }, { "batch@4" }, { "batch@4" } }, "--await 4", "--shards 8" },
    { "one, in a second fit", { { "" }, { "", "batch@20" } }, "--kill worker:1@5 --await 2", "--shards 4 --fits 3 --models 2 --epochs 2" },
    { "one that has callbacks", { { "" }, { "", "batch@9" } }, "--kill worker:1@5 --await 2", "--shards 4 --callbacks true" },
  } do
    local name, lives, kills, arguments = unpack(case)
    it("take part from then on, and no bit differs: " .. name, function()
      local text, there = train(lives, arguments, kills)
      assert.equal(#lives, there, text)
      expect(text, "has come: the workers pause for it", ("training goes on with %d of %d workers"):format(#lives, #lives))
    end)
  end

  it("are waited for where the chief is lost, which then begins again with their state", function()
    local text, there = train({ { "", "" }, { "" } }, "--shards 4", "--kill worker:0@9")
    assert.equal(2, there, text)
  end)
end)

describe("a loop with recovery", function()
  for _, case in ipairs {
    { "is done without workers that never come back", { { "" }, { "" }, { "" }, { "" } }, "--kill worker:2@5,worker:1@11+", 2 },
    { "is done without one that is lost between two updates", { { "" }, { "" } }, "--updates 2 --kill worker:1@7/", 1 },
    { "takes in workers that start late", { { "" }, { "batch@2" }, { "" }, { "batch@3" } }, "--await 4", 4 },
    { "takes in one that was killed, between two updates", { { "" }, { "", "batch@9" } }, "--updates 2 --await 2 --kill worker:1@5/", 2 },
  } do
    local name, lives, how, wanted = unpack(case)
    it(name .. ", and no bit differs", function()
      local updates = how:match("%-%-updates %d") or ""
      local text, there = train(lives, "--shards 4 " .. updates, how, nil, "loop.lua")
      assert.equal(wanted, there, text)
      expect(text, ("training goes on with %d of %d workers"):format(wanted, #lives))
    end)
  end
end)

describe("min_workers", function()
  local function said(script, environment)
    local config = [[{"cluster":{"worker":["127.0.0.1:1","127.0.0.1:2"]},"task":{"type":"worker","index":1}}]]
    return support.run(("env %s TF_CONFIG='%s' timeout -k 5 60 %q %s"):format(environment or "", config, support.program,
      support.file("wrong.lua", script)))
  end

  it("says what cannot be", function()
    local elastic = "require('flow').config.enable_op_determinism { shards = %d }\n"
      .. "require('flow').distribute.MultiWorkerMirroredStrategy { min_workers = 1, %s }"
    expect(said(elastic:format(1, "")), "min_workers = 1, but a single shard cannot be shared: set shards to 2 or more")
    expect(said(elastic:format(2, "shrink_after = 0")), "shrink_after is a number of seconds above 0, got the number 0")
    expect(said(elastic:format(2, ""), "FLOW_SHRINK_AFTER=soon"), "FLOW_SHRINK_AFTER is a number of seconds above 0, got", "soon")
  end)
end)

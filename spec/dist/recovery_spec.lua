-- recovery_spec.lua: a worker that is killed comes back, the others have waited for it, and the training ends with the bits that it has
-- where nobody was killed. spec/dist/recovery.lua is what they train, and where they are killed.
local support = require "spec.support.init"

-- The digest that every worker prints, and all that was said. environment: "NAME=value".
local function train(workers, arguments, environment, launch)
  local folder = support.folder()
  local text, code = support.run(("env %s FLOW_THREADS=1 FLOWLUA_PATH=%slua timeout -k 5 60 %s launch %s --workers %d --max-restarts 20 "
    .. "%sspec/dist/recovery.lua -- --folder %s %s"):format(environment or "", support.root, support.program, launch or "", workers,
    support.root, folder, arguments))
  assert.equal(0, code, text)
  local digest, count = nil, 0
  for number, rest in text:gmatch("digest (%d+) (of %d+ values, %d+ epochs)") do
    assert.equal(digest or number .. rest, number .. rest, text)
    digest, count = number .. rest, count + 1
  end
  assert.equal(workers, count, text)
  return digest, text .. "\nfolder " .. folder
end

local references = {}

-- The digest where nobody is killed.
local function reference(workers, arguments, environment)
  local key = workers .. arguments .. (environment or "")
  references[key] = references[key] or train(workers, arguments, environment)
  return references[key]
end

local function restarts(text) return select(2, text:gsub("it starts again", "")) end

describe("a worker that is killed", function()
  -- Seven batches an epoch (six where the data is endless): in an epoch, at its last batch, at the first of the next one.
  for _, case in ipairs {
    { 2, "tensors", "worker:0@1,worker:1@10" }, { 2, "shuffled", "worker:1@7,worker:0@9" }, { 2, "own", "worker:0@7,worker:1@3" },
    { 2, "endless", "worker:1@6,worker:0@8" }, { 3, "shuffled", "worker:2@8,worker:0@6" }, { 2, "shuffled", "worker:1@test,worker:0@end" },
    { 3, "own", "worker:1@5,worker:2@12" },
  } do
    local workers, data, kills = unpack(case)
    it(("comes back, and no bit differs: %d workers, %s, %s"):format(workers, data, kills), function()
      local wanted = reference(workers, "--data " .. data)
      local digest, text = train(workers, ("--data %s --kill %s"):format(data, kills))
      assert.equal(wanted, digest, text)
      assert.equal(2, restarts(text), text)
    end)
  end

  it("comes back with what callbacks remember, and files that they write go on", function()
    local function path_of(text, name) return text:match("folder (%S+)") .. "/" .. name end
    local function log_of(text) return support.read(path_of(text, "log.csv")) end
    local wanted, plain = train(2, "--callbacks true")
    assert.equal(5, select(2, log_of(plain):gsub("\n", "")))
    for _, kills in ipairs { "worker:0@5", "worker:1@7,worker:0@20", "worker:0@test", "worker:0@trained" } do
      local digest, text = train(2, "--callbacks true --kill " .. kills)
      assert.is_false(support.exists(path_of(text, "backup")), text)
      assert.equal(wanted, digest, text)
      assert.equal(log_of(plain), log_of(text))
      assert.is_nil(text:find("flowlua: ", 1, true), text)
    end
  end)

  it("comes back in a later fit, and leaves out those that are over", function()
    local wanted = train(2, "--fits 3 --models 2 --epochs 2")
    local digest, text = train(2, "--fits 3 --models 2 --epochs 2 --kill worker:1@17,worker:0@35")
    assert.equal(wanted, digest, text)
    assert.truthy(text:find("it is skipped here", 1, true), text)
  end)

  it("comes back where the workers share no memory", function()
    local wanted = train(2, "", "FLOW_SHARED_MEMORY=0")
    assert.equal(wanted, (train(2, "--kill worker:1@9", "FLOW_SHARED_MEMORY=0")))
  end)

  it("comes back where the rows of a large matrix travel", function()
    for _, environment in ipairs { "FLOW_SHARED_MEMORY=0", "FLOW_SHARED_MEMORY=1" } do
      for data, wide in pairs { shuffled = 384, tensors = 1100 } do      -- rows of 1,100 numbers begin to travel before the others
        local arguments = ("--wide %d --epochs 2 --data %s"):format(wide, data)
        assert.equal(train(2, arguments, environment), (train(2, arguments .. " --kill worker:1@9,worker:0@13", environment)))
      end
    end
  end)
end)

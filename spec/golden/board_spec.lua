-- board_spec.lua: flowlua board shows what event files hold: TensorFlow's (board.py made spec/golden/board) and the library's own, while
-- they grow, and where they are damaged.
local support = require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"

local folders = {}

-- The program over a folder: get(path) gives head and body of an answer; close() ends it.
local function open(folder)
  local log = support.file("board.txt", "")
  local process = support.run(("{ env %s board %s --port 0 >%s 2>&1 & echo $!; }"):format(support.command, folder, log)):match("%d+")
  local port
  for _ = 1, 200 do
    port = support.read(log):match("http://127%.0%.0%.1:(%d+)/")
    if port then break end
    os.execute("sleep 0.05")
  end
  local board = { port = assert(port, support.read(log)) }
  function board.ask(request)
    local text = support.run(("bash -c 'exec 3<>/dev/tcp/127.0.0.1/%s; printf \"%s\\r\\n\\r\\n\" >&3; cat <&3'"):format(port, request))
    return text:match("^(.-\r\n)\r\n(.*)$")
  end
  function board.get(path) return select(2, board.ask("GET " .. path .. " HTTP/1.0")) end
  function board.runs() return json.decode(board.get "/runs") end
  -- The answer for a tag, its series by the names of their runs, and the tag's version.
  function board.tag(name)
    local all, names = board.runs(), {}
    for _, run in ipairs(all.runs) do names[run.id] = run.name end
    for _, tag in ipairs(all.tags) do
      if tag.name == name then
        local found, series = json.decode(board.get(("/%s/%d"):format(tag.kind, tag.id))), {}
        for _, each in ipairs(found.series) do series[names[each.run]] = each end
        return series, tag.kind, tag.version
      end
    end
  end
  function board.close() os.execute("kill " .. process) end
  return board
end

local function own_folder()
  folders[#folders + 1] = support.folder()
  return folders[#folders]
end

describe("flowlua board", function()
  teardown(function()
    for _, folder in ipairs(folders) do os.execute("rm -rf " .. folder) end
  end)

  it("reads what TensorFlow 1 and 2 write", function()
    local board = open(support.root .. "spec/golden/board")
    local loss, kind = board.tag "loss"
    assert.equal("scalars", kind)
    assert.same({ { 0, 1, 2 }, { 2, 1, 0 } }, { loss.one.steps, loss.one.values })
    assert.same({ { 0, 10, 20, 30, 40, 50 }, { 1, 0.5, 0.3333333432674408, 0.25, 0.20000000298023224, "NaN" } },
      { loss.two.steps, loss.two.values })
    local weights = board.tag "weights"
    assert.same({ { -1, -0.5, 1, 0, 1, 2, 1, 3, 3 } }, weights.one.histograms)
    assert.same({ { 0, 1, 1, 1, 2, 2, 2, 3, 4, 3, 4, 1 } }, weights.two.histograms)
    assert.same({ { 0, 0, 0, 0, 0, 0, 0, 0, 0 } }, board.tag("zeros").two.histograms)
    assert.same({ "some *Markdown* and ümlauts" }, board.tag("note").two.texts)
    local picture = board.tag "picture"
    assert.same({ { 9 }, { 7 } }, { picture.one.steps, picture.two.steps })
    assert.equal(2, #picture.two.pictures[1])
    local second = flow.image.decode(board.get("/" .. picture.two.pictures[1][2]))
    assert.same({ 2, 2, 3 }, { second.shape[1], second.shape[2], second.shape[3] })
    assert.equal(120, second:reshape { 12 }:totable()[1])
    assert.equal(128, flow.image.decode(board.get("/" .. picture.one.pictures[1][1])):reshape { -1 }:totable()[1])
    board.close()
  end)

  it("answers GET alone, and has nothing but its pages", function()
    local board = open(support.root .. "spec/golden/board")
    local head, page = board.ask "GET / HTTP/1.0"
    assert.truthy(head:find("^HTTP/1.0 200 OK\r\nContent%-Type: text/html"), head)
    assert.truthy(page:find("</html>", 1, true))
    assert.is_nil(page:find("https?://[^w]"))      -- but the name of SVG
    board.runs()
    for _, path in ipairs { "/../board.py", "/one", "/scalars/99", "/scalars/-1", "/scalars/0x", "/histograms/0", "/picture/0/0/0/0",
                            "/picture/3/0/1/0", "/picture/3/0/99999999999999999999/0", "/picture/3/9/0/0", "/picture/3" } do
      assert.truthy(board.ask("GET " .. path .. " HTTP/1.0"):find("^HTTP/1.0 404 "), path)
    end
    assert.truthy(board.ask("POST /runs HTTP/1.0"):find("^HTTP/1.0 405 "))
    assert.truthy(board.ask("GET /runs HTTP/1.1\\r\\nHost: evil.example"):find("^HTTP/1.0 403 "))
    assert.truthy(board.ask("GET /runs HTTP/1.1\\r\\nHost: localhost:1"):find("^HTTP/1.0 200 "))
    board.close()
  end)

  it("shows what a training writes while it runs, and reads no byte twice", function()
    local folder = own_folder()
    local board = open(folder)
    assert.same({}, board.runs().tags)
    local model = flow.Sequential({ flow.layers.Input { 2 }, flow.layers.Dense(1, { name = "dense" }) }, { name = "model" })
    model:compile { optimizer = "sgd", loss = "mse" }
    local versions = {}
    model:fit(flow.ones { 8, 2 }, flow.ones { 8, 1 }, { epochs = 3, verbose = 0, validation_split = 0.5, callbacks = {
      flow.callbacks.TensorBoard(folder .. "/a", { histogram_freq = 1 }),
      flow.callbacks.LambdaCallback { on_epoch_end = function(epoch)
        local loss, _, version = board.tag "epoch_loss"
        versions[epoch + 1] = { #loss["a/train"].values, #loss["a/validation"].values, version }
      end } } })
    assert.same({ { 1, 1, 2 }, { 2, 2, 4 }, { 3, 3, 6 } }, versions)
    assert.same({ 0, 1, 2 }, board.tag("model/dense/kernel/histogram")["a/train"].steps)
    local models, kind = board.tag "keras"
    assert.same({ "graphs", 1 }, { kind, #models["a/train"].graphs })
    assert.equal("dense", json.decode(models["a/train"].graphs[1]).config.layers[2].config.name)
    board.close()
  end)

  it("keeps the extremes of long curves in few points", function()
    local folder = own_folder()
    local writer = flow.summary.create_file_writer(folder)
    for step = 0, 4999 do writer:scalar("curve", step == 1234 and 7 or step % 2, step) end
    writer:close()
    local board = open(folder)
    local curve = board.tag("curve")["."]
    assert.truthy(#curve.values <= 512 and #curve.values >= 256)
    assert.equal(4999, curve.steps[#curve.steps])
    local most, least = 0, 7
    for i in ipairs(curve.values) do most, least = math.max(most, curve.high[i]), math.min(least, curve.low[i]) end
    assert.same({ 7, 0 }, { most, least })
    board.close()
  end)

  it("reads a damaged file up to the damage, says where that is, and goes on with whole ones", function()
    local folder = own_folder()
    local function write(name, values)
      local writer = flow.summary.create_file_writer(folder .. "/" .. name)
      for step, value in ipairs(values) do writer:scalar("x", value, step) end
      writer:close()
      local path = flow.io.glob(folder .. "/" .. name .. "/*")[1]
      return path, support.read(path)
    end
    local path, bytes = write("flipped", { 1, 2, 3 })
    support.write(path, bytes:sub(1, -30) .. string.char((bytes:byte(-29) + 1) % 256) .. bytes:sub(-28))
    local short, all = write("cut", { 4, 5, 6 })
    support.write(short, all:sub(1, -6))
    local other = "cd %s && mkdir other && head -c 3000 /dev/zero >other/events.out.tfevents.1 && mkfifo other/tfevents && ln -s / root"
    os.execute(other:format(folder))
    local board = open(folder)
    local x = board.tag "x"
    assert.same({ { 1, 2 }, { 4, 5 } }, { x.flipped.values, x.cut.values })
    local troubles = board.runs().troubles
    assert.equal(3, #troubles)
    local said = table.concat(troubles, "\n")
    assert.truthy(said:find("flipped/[^\n]*the record at byte %d+ is damaged: its bytes have a wrong checksum"), said)
    assert.truthy(said:find("cut/[^\n]*the record at byte %d+ is damaged"), said)
    assert.truthy(said:find("other/[^\n]*the record at byte 0 is damaged"), said)
    support.write(short, all)                              -- it was being written
    assert.same({ 4, 5, 6 }, board.tag("x").cut.values)
    support.write(path, bytes:sub(1, 40))                  -- another file: its run is read again, and has nothing
    assert.is_nil(board.tag("x").flipped)
    os.execute("rm -r " .. folder .. "/cut")
    assert.is_nil(board.tag "x")
    board.close()
  end)

  it("says what it does not take", function()
    local file = support.file("a.txt", "")
    for arguments, message in pairs {
      [""] = "board: which folder? flowlua board logs",
      [file] = "board: " .. file .. " is not a folder",
      ["logs --port x"] = "board: --port is a whole number up to 65535, got x",
      ["logs --port 70000"] = "board: --port is a whole number up to 65535, got 70000",
      ["a b"] = "board: one folder at a time, got a and b: their common folder shows both",
    } do
      local output, code = support.run(support.command .. " board " .. arguments)
      assert.equal(1, code)
      assert.truthy(output:find(message, 1, true), output)
    end
  end)
end)

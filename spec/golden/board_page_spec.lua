-- board_page_spec.lua: the page of flowlua board in a real browser, while a training runs: its curves, histograms, pictures and graph are
-- what the browser has made of them. Needs chromium.
local support = require "spec.support.init"
local flow = require "flow"

local browser = support.run("command -v chromium || command -v chromium-browser || command -v google-chrome || true"):match("%S+")

local function start(folder)
  local log = support.file("board.txt", "")
  local process = support.run(("{ env %s board %s --port 0 >%s 2>&1 & echo $!; }"):format(support.command, folder, log)):match("%d+")
  local address
  for _ = 1, 200 do
    address = support.read(log):match("(http://127%.0%.0%.1:%d+/)")
    if address then break end
    os.execute("sleep 0.05")
  end
  return assert(address, support.read(log)), function() os.execute("kill " .. process) end
end

describe("the page of flowlua board in a browser", function()
  if not browser then return pending("chromium is not installed") end

  it("shows curves, histograms, pictures and the model of a training that runs", function()
    local folder, profile = support.folder(), support.folder()
    local address, close = start(folder)
    local open = ("timeout 100 %s --headless --no-sandbox --disable-gpu --window-size=1200,4000 --user-data-dir=%s "
      .. "--virtual-time-budget=%d --dump-dom %s#%s 2>/dev/null")
    -- What the browser has for a tab once that has the text, and no panel is empty; on a slow machine it is given more time.
    local function page(tab, text)
      local found
      for seconds = 8, 40, 8 do
        found = support.run(open:format(browser, profile, 1000 * seconds, address, tab))
        if found:find(text) and not found:find("<div></div></section>", 1, true) then break end
      end
      return found
    end
    -- The content of a tag's panel, or nil.
    local function panel(text, tag) return text:match("<h2>" .. tag:gsub("%p", "%%%0") .. "</h2>(.-)</section>") end
    local function count(text, what) return select(2, text:gsub(what, "")) end

    local x, y = flow.random.uniform { 16, 4 }, flow.ones { 16, 1 }
    local model = flow.Sequential({ flow.layers.Input { 4 }, flow.layers.Dense(3, { name = "hidden" }), flow.layers.Dense(1) },
      { name = "model" })
    model:compile { optimizer = "sgd", loss = "mse" }
    local writer = flow.summary.create_file_writer(folder .. "/a/seen")
    local seen = {}
    model:fit(x, y, { epochs = 3, verbose = 0, validation_split = 0.5, callbacks = {
      flow.callbacks.TensorBoard(folder .. "/a", { histogram_freq = 1 }),
      flow.callbacks.LambdaCallback { on_epoch_end = function(epoch)
        writer:image("squares", flow.zeros { 1, 8, 4, 3 }, epoch)
        writer:flush()
        if epoch == 0 then
          seen.first = page("scalars", "<circle")
        elseif epoch == 1 then
          seen.scalars, seen.histograms = page("scalars", "<circle"), page("histograms", "<title>step 1")
          seen.pictures, seen.graphs = page("pictures", "<img [^>]*style="), page("graphs", "<rect")
        end
      end } } })
    writer:close()
    close()
    os.execute(("rm -rf %s %s"):format(folder, profile))

    local before, loss = panel(seen.first, "epoch_loss"), panel(seen.scalars, "epoch_loss")
    assert.truthy(before and loss, seen.scalars)
    assert.same({ 2, 4 }, { count(before, "<circle"), count(loss, "<circle") })      -- training and validation, one point an epoch
    assert.equal(2, count(loss, "<path d=\"M[%d.]+,[%d.]+L[%d.]+,[%d.]+\""))
    assert.truthy(loss:find("a/train [%d.e-]+ · a/validation [%d.e-]+"), loss)
    assert.truthy(seen.scalars:find(">3 runs<", 1, true))

    local kernel = panel(seen.histograms, "model/hidden/kernel/histogram")
    assert.truthy(kernel, seen.histograms)
    assert.equal(2, count(kernel, "<title>step %d: %-?[%d.e-]+ to [%d.e-]+</title>"))      -- a row for each epoch
    for path in kernel:gmatch("<path d=\"([^\"]*)\"") do assert.truthy(count(path, "L") > 3 and not path:find("NaN", 1, true), path) end

    local squares = panel(seen.pictures, "squares")
    assert.truthy(squares, seen.pictures)
    assert.truthy(squares:find('<img alt="squares" src="picture/%d+/%d+/%d+/0" style="width: 80px;">'), squares)      -- 20 times as large
    assert.truthy(squares:find("a/seen · step 1", 1, true), squares)
    assert.truthy(squares:find('<input type="range" min="0" max="1"', 1, true), squares)

    local graph = panel(seen.graphs, "keras")
    assert.truthy(graph, seen.graphs)
    assert.truthy(graph:find(">Dense  hidden</text><text[^>]*>units 3</text>"), graph)
    assert.equal(2, count(graph, "<path d=\"M"))                                    -- input, hidden, dense
  end)
end)

-- citations.lua: a graph attention network learns the subjects of papers from what they cite, as in Keras' example "Graph attention network
-- (GAT) for node classification": a model that holds the whole graph, attention over the edges of each node by segment_sum, and the
-- numbers of nodes as data. The papers are made up: words say little of a paper's subject, and most citations stay within it.
--
--   flowlua lua/examples/citations.lua             the test accuracy is 0.88; words alone (--layers 0) reach 0.49
local flow = require "flow"
local layers, ops = flow.layers, flow.keras.ops

local options = flow.args { epochs = 60, papers = 600, layers = 2, heads = 4, units = 16, seed = 1 }
flow.set_random_seed(options.seed)
math.randomseed(options.seed)

local SUBJECTS, WORDS, CITATIONS = 5, 40, 4
local subjects, of_subject = {}, {}
for i = 1, options.papers do
  subjects[i] = math.random(SUBJECTS) - 1
  of_subject[subjects[i]] = of_subject[subjects[i]] or {}
  table.insert(of_subject[subjects[i]], i)
end
local citations = {}      -- pairs of who cites and who is cited, numbers from 0; each paper cites itself, too
for i = 1, options.papers do
  citations[#citations + 1] = { i - 1, i - 1 }
  for _ = 1, CITATIONS do
    local among = of_subject[subjects[i]]
    local cited = math.random() < 0.8 and among[math.random(#among)] or math.random(options.papers)
    citations[#citations + 1] = { i - 1, cited - 1 }
  end
end
local labels = flow.tensor(subjects, { dtype = "int32" })
local typical = flow.random.uniform { SUBJECTS, WORDS }      -- how often a word is in papers of a subject
local chances = flow.take(typical, labels + 1, 1) * 0.3 + 0.35
local node_states = flow.random.uniform({ options.papers, WORDS }):lt(chances):to "float32"
local edges = flow.tensor(citations, { dtype = "int32" })

---- the model ------------------------------------------------------------------------------------------------------------------

local GraphAttention = layers.Layer:extend "GraphAttention"
function GraphAttention:init(units) self.units = units end
function GraphAttention:build(input_shape)
  self.kernel = self:add_weight { name = "kernel", shape = { input_shape[#input_shape], self.units } }
  self.attention = self:add_weight { name = "attention", shape = { 2 * self.units, 1 } }
end

-- What a paper gets from those that it cites, by scores that are 1 in sum for each paper.
function GraphAttention:call(states)
  local z, count = ops.matmul(states, self.kernel), ops.shape(states)[1]
  local targets, sources = edges[{ {}, 1 }], edges[{ {}, 2 }]
  local z_sources = ops.take(z, sources + 1, 1)
  local pairs_of_states = ops.concatenate({ ops.take(z, targets + 1, 1), z_sources }, -1)
  local scores = ops.exp(ops.clip(ops.leaky_relu(ops.squeeze(ops.matmul(pairs_of_states, self.attention), -1)), -2, 2))
  local sums = ops.segment_sum(scores, targets, count)
  local weights = scores / ops.take(sums, targets + 1, 1)
  return ops.segment_sum(z_sources * ops.expand_dims(weights, -1), targets, count)
end

local GraphAttentionNetwork = flow.Model:extend "GraphAttentionNetwork"
function GraphAttentionNetwork:init(nodes, depth, heads, units, outputs)
  self.nodes = nodes
  self.preprocess = layers.Dense(heads * units, { activation = "relu" })
  self.blocks = {}
  for i = 1, depth do
    self.blocks[i] = {}
    for k = 1, heads do self.blocks[i][k] = GraphAttention(units) end
  end
  self.logits = layers.Dense(outputs)
end

-- numbers: of the papers that are asked for.
function GraphAttentionNetwork:call(numbers)
  local x = self.preprocess(self.nodes)
  for _, heads in ipairs(self.blocks) do
    local results = {}
    for i, head in ipairs(heads) do results[i] = head(x) end
    x = x + ops.relu(ops.concatenate(results, -1))
  end
  return ops.take(self.logits(x), numbers + 1, 1)
end

local order = flow.random.shuffle(flow.arange(options.papers))
local half = math.floor(options.papers / 2)
local train, test = order[{ { 1, half } }], order[{ { half + 1, -1 } }]
local function subjects_of(numbers) return flow.take(labels, numbers + 1, 1) end

local model = GraphAttentionNetwork(node_states, options.layers, options.heads, options.units, SUBJECTS)
local loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true }
model:compile { optimizer = flow.optimizers.Adam(0.005), loss = loss, metrics = { "accuracy" } }
local stop = flow.callbacks.EarlyStopping { monitor = "val_accuracy", patience = 10, restore_best_weights = true }
model:fit(train, subjects_of(train), {
  epochs = options.epochs, batch_size = 64, validation_split = 0.2, callbacks = { stop }, verbose = 2,
})
print(("test accuracy: %.4f"):format(model:evaluate(test, subjects_of(test), { verbose = 0 }).accuracy))

-- distribute.lua: what flow.help says of devices, strategies, clusters, checkpoints and jobs: see reference/texts.lua for the form.
return [==[
flow.config.set_threads: How many threads compute.
  flow.config.set_threads(2)
flow.config.get_threads: How many threads compute.
  print(flow.config.get_threads() >= 1)      --> true
flow.config.set_precision: "fast", or "exact": no Winograd, no reduced types.
  flow.config.set_precision("exact")
  flow.config.set_precision("fast")
flow.config.get_precision: "fast" or "exact".
  print(flow.config.get_precision())      --> fast
flow.config.enable_op_determinism: Says that runs are to be the same to the last bit; { shards = 8 }: for any number of workers.
  flow.config.enable_op_determinism(true)
flow.config.set_logical_devices: Several devices in place of one, to try strategies without GPUs.
  flow.config.set_logical_devices("cpu", 1)      -- at the beginning of the program
  print(#flow.config.list_logical_devices("cpu"))      --> 1
flow.config.list_logical_devices: The devices that can be computed on.
  print(#flow.config.list_logical_devices() >= 1)      --> true
flow.config.list_physical_devices: The devices of the machine.
  print(#flow.config.list_physical_devices() >= 1)      --> true
flow.config.list_devices: The devices that can be computed on.
  print(#flow.config.list_devices() >= 1)      --> true
flow.distribute.MirroredStrategy: All GPUs of the machine, else the CPU: each has the model and a part of every batch.
  local strategy = flow.distribute.MirroredStrategy()
  print(strategy.num_replicas_in_sync)      --> 1
flow.distribute.OneDeviceStrategy: One device.
  print(flow.distribute.OneDeviceStrategy("cpu:0").num_replicas_in_sync)      --> 1
flow.distribute.MultiWorkerMirroredStrategy: Several processes; TF_CONFIG, mpirun or srun say which is which.
  print(flow.distribute.MultiWorkerMirroredStrategy().num_replicas_in_sync)      --> 1
flow.distribute.experimental.MultiWorkerMirroredStrategy: The same, under its older name.
  print(flow.distribute.experimental.MultiWorkerMirroredStrategy().num_replicas_in_sync)      --> 1
flow.distribute.ParameterServerStrategy: Workers that train each for itself, with variables on servers.
  print(pcall(flow.distribute.ParameterServerStrategy))
flow.distribute.ClusterCoordinator: Schedules functions on the workers of parameter servers.
  print(pcall(flow.distribute.ClusterCoordinator))
flow.distribute.Server: What a worker or a parameter server runs.
  print(pcall(flow.distribute.Server))
flow.distribute.CommunicationOptions: How workers add up gradients: AUTO, RING, NCCL or MPI, time limits, compression.
  flow.distribute.CommunicationOptions { implementation = "RING", timeout_seconds = 30 }
flow.distribute.NcclAllReduce: GPUs add up gradients by NCCL.
  flow.distribute.MirroredStrategy { cross_device_ops = flow.distribute.NcclAllReduce() }
flow.distribute.HierarchicalCopyAllReduce: Devices add up gradients by copies between neighbours.
  flow.distribute.MirroredStrategy { cross_device_ops = flow.distribute.HierarchicalCopyAllReduce() }
flow.distribute.ReductionToOneDevice: One device adds up the gradients of all.
  flow.distribute.MirroredStrategy { cross_device_ops = flow.distribute.ReductionToOneDevice() }
flow.distribute.TFConfigClusterResolver: The cluster that the variable TF_CONFIG describes.
  print(flow.distribute.TFConfigClusterResolver().num_workers)      --> 1
flow.distribute.SimpleClusterResolver: The cluster that a table describes.
  print(flow.distribute.SimpleClusterResolver({ worker = { "a:1" } }, { task_type = "worker", task_id = 0 }).task_id)      --> 0
flow.distribute.ClusterResolver: The cluster that a table, or TF_CONFIG, describes.
  print(flow.distribute.ClusterResolver().num_workers)      --> 1
resolver:cluster_spec: The addresses of all tasks.
  print(type(flow.distribute.TFConfigClusterResolver():cluster_spec()))      --> table
flow.distribute.FixedShardsPartitioner: Cuts variables into this many parts.
  flow.distribute.FixedShardsPartitioner(2)
flow.distribute.MinSizePartitioner: Cuts variables into parts that are not smaller than this.
  flow.distribute.MinSizePartitioner { max_shards = 2 }
flow.distribute.MaxSizePartitioner: Cuts variables into parts that are not larger than this.
  flow.distribute.MaxSizePartitioner(1024)
flow.distribute.cost: How much faster many workers can be expected to train.
  print(type(flow.distribute.cost { gradient_bytes = 1e6, step_seconds = 0.1, latency = 1e-4, bandwidth = 1e9 }))      --> table
flow.callbacks.VerifyReplicas: Compares the weights of all replicas at intervals; flow.distribute.verify is its other name.
  print(flow.distribute.verify({ every = 100 }).every)      --> 100
flow.distribute.get_strategy: The strategy whose scope is open, else the default one.
  print(flow.distribute.get_strategy().num_replicas_in_sync)      --> 1
flow.distribute.has_strategy: Whether a scope is open, or code runs on replicas.
  print(flow.distribute.has_strategy())      --> false
flow.distribute.in_cross_replica_context: Whether code runs once for all replicas, in a scope.
  print(flow.distribute.in_cross_replica_context())      --> false
flow.distribute.get_replica_context: The replica that the code runs on; nil in a scope.
  print(flow.distribute.get_replica_context() ~= nil)      --> true
flow.distribute.report: Shows numbers of a loop of your own where the status is shown.
  flow.distribute.report { step = 300, loss = 0.2 }
context:all_reduce: The sum or the mean of a value over all replicas.
  print(flow.distribute.get_replica_context():all_reduce("sum", flow.tensor(2)):item())      --> 2
context:all_gather: The values of all replicas, one after the other.
  print(flow.distribute.get_replica_context():all_gather(flow.ones { 1 }, 1))
context:get_per_replica_batch_size: The rows of a global batch that this replica gets.
  local strategy = flow.distribute.MirroredStrategy()
  local ds = strategy:distribute_datasets_from_function(function(context)
    return flow.data.Dataset.range(8):batch(context:get_per_replica_batch_size(4))
  end)
strategy:run: Calls f on every replica with its part of the arguments; returns what each returned.
  print(flow.distribute.MirroredStrategy():run(function(x) return x * 2 end, { flow.ones { 1 } }))
strategy:reduce: The sum or the mean of what replicas returned.
  local strategy = flow.distribute.MirroredStrategy()
  print(strategy:reduce("sum", strategy:run(function() return flow.tensor(3) end)):item())      --> 3
strategy:gather: What replicas returned, one after the other.
  local strategy = flow.distribute.MirroredStrategy()
  print(strategy:gather(strategy:run(function() return flow.ones { 1 } end), 1))
strategy:experimental_distribute_dataset: Batches of the global size, split over the replicas.
  local strategy = flow.distribute.MirroredStrategy()
  for x in strategy:experimental_distribute_dataset(flow.data.Dataset.range(4):batch(2)):iter() do print(x) end
strategy:distribute_datasets_from_function: Batches of each worker's own data set, which a function makes.
  local strategy = flow.distribute.MirroredStrategy()
  strategy:distribute_datasets_from_function(function(context) return flow.data.Dataset.range(4):batch(2) end)
strategy:experimental_distribute_datasets_from_function: The same, under its older name.
  local strategy = flow.distribute.MirroredStrategy()
  strategy:experimental_distribute_datasets_from_function(function() return flow.data.Dataset.range(4):batch(2) end)
strategy:experimental_distribute_values_from_function: A value for each replica, which a function makes.
  local strategy = flow.distribute.MirroredStrategy()
  print(strategy:experimental_distribute_values_from_function(function() return flow.tensor(1) end))
strategy:experimental_local_results: The list of what the replicas of this worker returned.
  local strategy = flow.distribute.MirroredStrategy()
  print(#strategy:experimental_local_results(strategy:run(function() return flow.tensor(1) end)))      --> 1
strategy:run_with_recovery: A loop that goes on when workers die and come back.
  local strategy = flow.distribute.MirroredStrategy()
  print(pcall(strategy.run_with_recovery, strategy))
strategy:close: Leaves the cluster.
  flow.distribute.MirroredStrategy():close()
coordinator:schedule: Hands a function to the next free worker; returns a value that will be there.
  print(pcall(flow.distribute.ClusterCoordinator))
coordinator:join: Waits for all that was scheduled.
  print(pcall(flow.distribute.ClusterCoordinator))
coordinator:done: Whether all that was scheduled is done.
  print(pcall(flow.distribute.ClusterCoordinator))
coordinator:fetch: Waits for a value, or a list of them.
  print(pcall(flow.distribute.ClusterCoordinator))
coordinator:create_per_worker_dataset: A data set for each worker.
  print(pcall(flow.distribute.ClusterCoordinator))
value:fetch: Waits for what a scheduled function returned.
  print(pcall(flow.distribute.ClusterCoordinator))
value:get: Waits for what a scheduled function returned.
  print(pcall(flow.distribute.ClusterCoordinator))
server:join: Serves until the cluster ends.
  print(pcall(flow.distribute.Server))
flow.nn.compute_average_loss: The sum of losses divided by the rows of the global batch.
  print(flow.nn.compute_average_loss(flow.tensor { 1, 3 }):item())      --> 2
flow.nn.scale_regularization_loss: A penalty divided by the number of replicas.
  print(flow.nn.scale_regularization_loss(flow.tensor(2)):item())      --> 2
flow.train.Checkpoint: Objects and variables under names of your own, saved and restored together.
  local checkpoint = flow.train.Checkpoint { epoch = flow.Variable(0) }
  print(checkpoint:save("ckpt"))
flow.train.list_variables: The names and shapes of what a checkpoint holds, or the latest one of a folder.
  local path = flow.train.Checkpoint({ epoch = flow.Variable({ 1, 2 }) }):save("ckpt")
  print(flow.train.list_variables(path)[1][1])      --> epoch
flow.train.load_variable: A tensor of a checkpoint by its name.
  local path = flow.train.Checkpoint({ epoch = flow.Variable(7) }):save("ckpt")
  print(flow.train.load_variable(path, "epoch"):item())      --> 7
flow.train.load_checkpoint: An object that says what is in a checkpoint and reads its tensors one by one.
  local path = flow.train.Checkpoint({ epoch = flow.Variable(7) }):save("ckpt")
  print(flow.train.load_checkpoint(path):has_tensor("epoch"))      --> true
reader:has_tensor: Whether a checkpoint has a tensor of this name.
  local path = flow.train.Checkpoint({ epoch = flow.Variable(7) }):save("ckpt")
  print(flow.train.load_checkpoint(path):has_tensor("epochs"))      --> false
reader:get_tensor: A tensor of a checkpoint by its name.
  local path = flow.train.Checkpoint({ epoch = flow.Variable(7) }):save("ckpt")
  print(flow.train.load_checkpoint(path):get_tensor("epoch"):item())      --> 7
reader:get_variable_to_shape_map: The shapes of all tensors, by their names.
  local path = flow.train.Checkpoint({ epoch = flow.Variable({ 1, 2 }) }):save("ckpt")
  print(flow.train.load_checkpoint(path):get_variable_to_shape_map().epoch[1])      --> 2
reader:get_variable_to_dtype_map: The dtypes of all tensors, by their names.
  local path = flow.train.Checkpoint({ epoch = flow.Variable({ 1, 2 }) }):save("ckpt")
  print(flow.train.load_checkpoint(path):get_variable_to_dtype_map().epoch)      --> float32
checkpoint:save: Writes a numbered checkpoint; returns its path.
  print(flow.train.Checkpoint({ epoch = flow.Variable(0) }):save("ckpt") ~= nil)      --> true
checkpoint:restore: Reads a checkpoint into the objects.
  local checkpoint = flow.train.Checkpoint { epoch = flow.Variable(5) }
  checkpoint:restore(checkpoint:save("ckpt"))
checkpoint:write: Writes a checkpoint to this very path.
  flow.train.Checkpoint({ epoch = flow.Variable(0) }):write("here")
checkpoint:read: Reads what write() wrote.
  local checkpoint = flow.train.Checkpoint { epoch = flow.Variable(0) }
  checkpoint:write("here")
  checkpoint:read("here")
status:assert_nontrivial_match: Raises if nothing of what the checkpoint holds was in the file.
  local checkpoint = flow.train.Checkpoint { step = flow.Variable(0) }
  checkpoint:restore(checkpoint:save("ckpt")):assert_nontrivial_match()
status:assert_consumed: Raises unless all that the checkpoint holds was restored.
  local checkpoint = flow.train.Checkpoint { epoch = flow.Variable(5) }
  checkpoint:restore(checkpoint:save("ckpt")):assert_consumed()
status:assert_existing_objects_matched: Raises unless all objects were restored.
  local checkpoint = flow.train.Checkpoint { epoch = flow.Variable(5) }
  checkpoint:restore(checkpoint:save("ckpt")):assert_existing_objects_matched()
status:expect_partial: Says that not all that the checkpoint holds is wanted.
  local checkpoint = flow.train.Checkpoint { epoch = flow.Variable(5) }
  checkpoint:restore(checkpoint:save("ckpt")):expect_partial()
flow.train.CheckpointManager: Keeps the last checkpoints of a folder.
  local checkpoint = flow.train.Checkpoint { epoch = flow.Variable(0) }
  local manager = flow.train.CheckpointManager(checkpoint, { directory = "checkpoints", max_to_keep = 2 })
  print(manager:save() ~= nil)      --> true
manager:save: Writes the next checkpoint and removes the oldest; returns its path.
  local checkpoint = flow.train.Checkpoint { epoch = flow.Variable(0) }
  flow.train.CheckpointManager(checkpoint, "checkpoints", { max_to_keep = 2 }):save()
manager:restore_or_initialize: Restores the latest checkpoint, or calls init_fn if there is none.
  local checkpoint = flow.train.Checkpoint { epoch = flow.Variable(0) }
  flow.train.CheckpointManager(checkpoint, "empty", { max_to_keep = 2 }):restore_or_initialize()
manager:sync: Waits for a checkpoint that is being written.
  local checkpoint = flow.train.Checkpoint { epoch = flow.Variable(0) }
  flow.train.CheckpointManager(checkpoint, "checkpoints", { max_to_keep = 2 }):sync()
manager:close: Waits, and releases what the manager holds.
  local checkpoint = flow.train.Checkpoint { epoch = flow.Variable(0) }
  flow.train.CheckpointManager(checkpoint, "checkpoints", { max_to_keep = 2 }):close()
flow.train.checkpoints_iterator: The newest checkpoint of a folder, each as it appears; the loop ends after `timeout` seconds without one.
  for path in flow.train.checkpoints_iterator("nowhere", { timeout = 0 }) do print(path) end
flow.train.latest_checkpoint: The path of a folder's latest checkpoint, or nil.
  print(flow.train.latest_checkpoint("nowhere"))      --> nil
flow.train.ClusterSpec: The addresses of a cluster's tasks, by their jobs.
  print(flow.train.ClusterSpec({ worker = { "a:2222", "b:2222" } }):num_tasks("worker"))      --> 2
cluster_spec:as_dict: The addresses as a plain table.
  print(flow.train.ClusterSpec({ worker = { "a:2222" } }):as_dict().worker[1])      --> a:2222
cluster_spec:job_tasks: The addresses of a job's tasks.
  print(flow.train.ClusterSpec({ worker = { "a:2222" } }):job_tasks("worker")[1])      --> a:2222
cluster_spec:num_tasks: How many tasks a job has.
  print(flow.train.ClusterSpec({ worker = { "a:2222" } }):num_tasks("worker"))      --> 1
cluster_spec:task_address: The address of a task, which counts from 0.
  print(flow.train.ClusterSpec({ worker = { "a:2222", "b:2222" } }):task_address("worker", 1))      --> b:2222
flow.train.SidecarEvaluator: Evaluates the checkpoints of a folder as they appear.
  print(pcall(flow.train.SidecarEvaluator))
evaluator:start: Waits for checkpoints and evaluates each.
  print(pcall(flow.train.SidecarEvaluator))
flow.jobs.CustomJob: A training job of worker pools, checked and written for a back end.
  local job = flow.jobs.CustomJob("train", { { machine_spec = { machine_type = "n1-standard-4" }, replica_count = 1,
    container_spec = { image_uri = "flowlua" } } })
  print(job.display_name)      --> train
flow.jobs.CustomContainerTrainingJob: A training job of a container.
  print(flow.jobs.CustomContainerTrainingJob("train", "flowlua").display_name)      --> train
job:run: Checks the job, writes its files, and hands it over unless dry_run is set.
  local job = flow.jobs.CustomContainerTrainingJob("train", "flowlua")
  print(pcall(job.run, job, { dry_run = true }))
job:findings: What is wrong with the job, or worth knowing, without running it.
  print(type(flow.jobs.CustomContainerTrainingJob("train", "flowlua"):findings()))      --> table
]==]

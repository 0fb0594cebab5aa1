-- tensorflow_names.lua: functions and classes of TensorFlow 2.18.1. Made by tensorflow_names.py.
return {
  [""] = [[
    AggregationMethod Assert CriticalSection DType DeviceSpec GradientTape Graph IndexedSlices IndexedSlicesSpec Module Operation
    OptionalSpec RaggedTensor RaggedTensorSpec RegisterGradient SparseTensor SparseTensorSpec Tensor TensorArray TensorArraySpec
    TensorShape TensorSpec TypeSpec UnconnectedGradients Variable VariableAggregation VariableSynchronization abs acos acosh add add_n
    approx_top_k argmax argmin argsort as_dtype as_string asin asinh assert_equal assert_greater assert_less assert_rank atan atan2
    atanh batch_to_space bitcast boolean_mask broadcast_dynamic_shape broadcast_static_shape broadcast_to case cast check_pinned
    clip_by_global_norm clip_by_norm clip_by_value complex concat cond constant constant_initializer control_dependencies conv
    conv2d_backprop_filter_v2 conv2d_backprop_input_v2 convert_to_tensor cos cosh cumsum custom_gradient device divide dynamic_partition
    dynamic_stitch edit_distance eig eigvals einsum ensure_shape equal executing_eagerly exp expand_dims extract_volume_patches eye
    fftnd fill fingerprint floor foldl foldr function gather gather_nd get_current_name_scope get_logger get_static_value
    grad_pass_through gradients greater greater_equal group guarantee_const hessians histogram_fixed_width histogram_fixed_width_bins
    identity identity_n ifftnd import_graph_def init_scope inside_function irfftnd is_symbolic_tensor is_tensor less less_equal linspace
    load_library load_op_library logical_and logical_not logical_or make_ndarray make_tensor_proto map_fn matmul matrix_square_root
    maximum meshgrid minimum multiply name_scope negative no_gradient no_op nondifferentiable_batch_function norm not_equal
    numpy_function one_hot ones ones_initializer ones_like pad parallel_stack pow print py_function ragged_fill_empty_rows
    ragged_fill_empty_rows_grad random_index_shuffle random_normal_initializer random_uniform_initializer range rank realdiv
    recompute_grad reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum
    register_tensor_conversion_function repeat required_space_to_batch_paddings reshape reverse reverse_sequence rfftnd roll round
    saturate_cast scalar_mul scan scatter_nd searchsorted sequence_mask shape shape_n sigmoid sign sin sinh size slice sort
    space_to_batch space_to_batch_nd split sqrt square squeeze stack stop_gradient strided_slice subtract switch_case tan tanh
    tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub tensor_scatter_nd_update tensordot tile
    timestamp transpose truediv truncatediv truncatemod tuple type_spec_from_value unique unique_with_counts unravel_index unstack
    variable_creator_scope vectorized_map where while_loop zeros zeros_initializer zeros_like
  ]],
  ["audio"] = [[
    decode_wav encode_wav
  ]],
  ["data"] = [[
    Dataset DatasetSpec FixedLengthRecordDataset Iterator IteratorSpec NumpyIterator Options TFRecordDataset TextLineDataset
    ThreadingOptions
  ]],
  ["data.experimental"] = [[
    AutoShardPolicy AutotuneAlgorithm AutotuneOptions Counter CsvDataset DatasetInitializer DistributeOptions ExternalStatePolicy
    OptimizationOptions Optional RandomDataset Reducer ServiceOptions SqlDataset TFRecordWriter ThreadingOptions assert_cardinality at
    bucket_by_sequence_length cardinality choose_from_datasets copy_to_device dense_to_ragged_batch dense_to_sparse_batch
    distributed_save enable_debug_mode enumerate_dataset from_list from_variant get_model_proto get_next_as_optional get_single_element
    get_structure group_by_reducer group_by_window ignore_errors index_table_from_dataset load make_batched_features_dataset
    make_csv_dataset make_saveable_from_iterator map_and_batch pad_to_cardinality parallel_interleave parse_example_dataset
    prefetch_to_device rejection_resample sample_from_datasets save scan shuffle_and_repeat snapshot table_from_dataset take_while
    to_variant unbatch unique
  ]],
  ["distribute"] = [[
    CrossDeviceOps DistributedDataset DistributedIterator DistributedValues HierarchicalCopyAllReduce InputContext InputOptions
    InputReplicationMode MirroredStrategy MultiWorkerMirroredStrategy NcclAllReduce OneDeviceStrategy ParameterServerStrategy ReduceOp
    ReductionToOneDevice ReplicaContext RunOptions Server Strategy StrategyExtended TPUStrategy experimental_set_strategy
    get_replica_context get_strategy has_strategy in_cross_replica_context
  ]],
  ["image"] = [[
    ResizeMethod adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_jpeg_quality adjust_saturation central_crop
    combined_non_max_suppression convert_image_dtype crop_and_resize crop_to_bounding_box decode_and_crop_jpeg decode_bmp decode_gif
    decode_image decode_jpeg decode_png draw_bounding_boxes encode_jpeg encode_png extract_glimpse extract_jpeg_shape extract_patches
    flip_left_right flip_up_down generate_bounding_box_proposals grayscale_to_rgb hsv_to_rgb image_gradients is_jpeg non_max_suppression
    non_max_suppression_overlaps non_max_suppression_padded non_max_suppression_with_scores pad_to_bounding_box
    per_image_standardization psnr random_brightness random_contrast random_crop random_flip_left_right random_flip_up_down random_hue
    random_jpeg_quality random_saturation resize resize_with_crop_or_pad resize_with_pad rgb_to_grayscale rgb_to_hsv rgb_to_yiq
    rgb_to_yuv rot90 sample_distorted_bounding_box sobel_edges ssim ssim_multiscale stateless_random_brightness
    stateless_random_contrast stateless_random_crop stateless_random_flip_left_right stateless_random_flip_up_down stateless_random_hue
    stateless_random_jpeg_quality stateless_random_saturation stateless_sample_distorted_bounding_box total_variation transpose
    yiq_to_rgb yuv_to_rgb
  ]],
  ["io"] = [[
    FixedLenFeature FixedLenSequenceFeature RaggedFeature SparseFeature TFRecordOptions TFRecordWriter VarLenFeature
    decode_and_crop_jpeg decode_base64 decode_bmp decode_compressed decode_csv decode_gif decode_image decode_jpeg decode_json_example
    decode_png decode_proto decode_raw deserialize_many_sparse encode_base64 encode_jpeg encode_png encode_proto extract_jpeg_shape
    is_jpeg match_filenames_once matching_files parse_example parse_sequence_example parse_single_example parse_single_sequence_example
    parse_tensor read_file serialize_many_sparse serialize_sparse serialize_tensor write_file write_graph
  ]],
  ["linalg"] = [[
    LinearOperator LinearOperatorAdjoint LinearOperatorBlockDiag LinearOperatorBlockLowerTriangular LinearOperatorCirculant
    LinearOperatorCirculant2D LinearOperatorCirculant3D LinearOperatorComposition LinearOperatorDiag LinearOperatorFullMatrix
    LinearOperatorHouseholder LinearOperatorIdentity LinearOperatorInversion LinearOperatorKronecker LinearOperatorLowRankUpdate
    LinearOperatorLowerTriangular LinearOperatorPermutation LinearOperatorScaledIdentity LinearOperatorToeplitz LinearOperatorTridiag
    LinearOperatorZeros adjoint band_part banded_triangular_solve cholesky cholesky_solve cross det diag diag_part eig eigh
    eigh_tridiagonal eigvals eigvalsh einsum expm eye global_norm inv l2_normalize logdet logm lstsq lu lu_matrix_inverse lu_reconstruct
    lu_solve matmul matrix_rank matrix_transpose matvec norm normalize pinv qr set_diag slogdet solve sqrtm svd tensor_diag
    tensor_diag_part tensordot trace triangular_solve tridiagonal_matmul tridiagonal_solve
  ]],
  ["math"] = [[
    abs accumulate_n acos acosh add add_n angle approx_max_k approx_min_k argmax argmin asin asinh atan atan2 atanh bessel_i0 bessel_i0e
    bessel_i1 bessel_i1e betainc bincount ceil confusion_matrix conj cos cosh count_nonzero cumprod cumsum cumulative_logsumexp digamma
    divide divide_no_nan equal erf erfc erfcinv erfinv exp expm1 floor floordiv floormod greater greater_equal igamma igammac imag
    in_top_k invert_permutation is_finite is_inf is_nan is_non_decreasing is_strictly_increasing l2_normalize lbeta less less_equal
    lgamma log log1p log_sigmoid log_softmax logical_and logical_not logical_or logical_xor maximum minimum mod multiply multiply_no_nan
    ndtri negative nextafter not_equal polygamma polyval pow real reciprocal reciprocal_no_nan reduce_all reduce_any
    reduce_euclidean_norm reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum reduce_variance rint
    round rsqrt scalar_mul segment_max segment_mean segment_min segment_prod segment_sum sigmoid sign sin sinh sobol_sample softmax
    softplus softsign sqrt square squared_difference subtract tan tanh top_k truediv unsorted_segment_max unsorted_segment_mean
    unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum xdivy xlog1py xlogy zero_fraction zeta
  ]],
  ["nn"] = [[
    RNNCellDeviceWrapper RNNCellDropoutWrapper RNNCellResidualWrapper all_candidate_sampler approx_max_k approx_min_k atrous_conv2d
    atrous_conv2d_transpose avg_pool avg_pool1d avg_pool2d avg_pool3d batch_norm_with_global_normalization batch_normalization bias_add
    collapse_repeated compute_accidental_hits compute_average_loss conv1d conv1d_transpose conv2d conv2d_transpose conv3d
    conv3d_transpose conv_transpose convolution crelu ctc_beam_search_decoder ctc_greedy_decoder ctc_loss ctc_unique_labels
    depth_to_space depthwise_conv2d depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input dilation2d dropout elu
    embedding_lookup embedding_lookup_sparse erosion2d fixed_unigram_candidate_sampler fractional_avg_pool fractional_max_pool gelu
    in_top_k isotonic_regression l2_loss l2_normalize leaky_relu learned_unigram_candidate_sampler local_response_normalization
    log_poisson_loss log_softmax lrn max_pool max_pool1d max_pool2d max_pool3d max_pool_with_argmax moments nce_loss normalize_moments
    pool relu relu6 safe_embedding_lookup_sparse sampled_softmax_loss scale_regularization_loss selu separable_conv2d sigmoid
    sigmoid_cross_entropy_with_logits silu softmax softmax_cross_entropy_with_logits softplus softsign space_to_batch space_to_depth
    sparse_softmax_cross_entropy_with_logits sufficient_statistics swish tanh top_k weighted_cross_entropy_with_logits weighted_moments
    with_space_to_batch zero_fraction
  ]],
  ["random"] = [[
    Algorithm Generator all_candidate_sampler categorical create_rng_state fixed_unigram_candidate_sampler fold_in gamma
    get_global_generator learned_unigram_candidate_sampler log_uniform_candidate_sampler normal poisson set_global_generator set_seed
    shuffle split stateless_binomial stateless_categorical stateless_gamma stateless_normal stateless_parameterized_truncated_normal
    stateless_poisson stateless_truncated_normal stateless_uniform truncated_normal uniform uniform_candidate_sampler
  ]],
  ["signal"] = [[
    dct fft fft2d fft3d fftnd fftshift frame hamming_window hann_window idct ifft ifft2d ifft3d ifftnd ifftshift inverse_mdct
    inverse_stft inverse_stft_window_fn irfft irfft2d irfft3d irfftnd kaiser_bessel_derived_window kaiser_window
    linear_to_mel_weight_matrix mdct mfccs_from_log_mel_spectrograms overlap_and_add rfft rfft2d rfft3d rfftnd stft vorbis_window
  ]],
  ["strings"] = [[
    as_string bytes_split format join length lower ngrams reduce_join regex_full_match regex_replace split strip substr to_hash_bucket
    to_hash_bucket_fast to_hash_bucket_strong to_number unicode_decode unicode_decode_with_offsets unicode_encode unicode_script
    unicode_split unicode_split_with_offsets unicode_transcode unsorted_segment_join upper
  ]],
  ["summary"] = [[
    SummaryWriter audio create_file_writer create_noop_writer flush graph histogram image record_if scalar should_record_summaries text
    trace_export trace_off trace_on write
  ]],
  ["train"] = [[
    BytesList Checkpoint CheckpointManager CheckpointOptions CheckpointView ClusterDef ClusterSpec Coordinator Example
    ExponentialMovingAverage Feature FeatureList FeatureLists Features FloatList Int64List JobDef SequenceExample ServerDef
    TrackableView checkpoints_iterator get_checkpoint_state latest_checkpoint list_variables load_checkpoint load_variable
  ]],
}

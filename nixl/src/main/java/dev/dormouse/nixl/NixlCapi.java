package dev.dormouse.nixl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.dormouse.foreign.Downcall;
import dev.dormouse.foreign.NativeLibrary;
import dev.dormouse.foreign.SymbolBinder;
import java.lang.foreign.MemoryLayout;
import java.lang.invoke.MethodHandle;

/**
 * The functions of NIXL's C interface that this module uses, one handle each.
 *
 * <p>The prototypes are those of {@code wrapper.h} in NIXL's Rust crate {@code nixl-sys} 1.5.1,
 * whose compiled twin is {@code libnixl_capi.so} in the wheel {@code nixl-cu12} 1.5.1. All {@code
 * nixl_capi_} functions return {@code nixl_capi_status_t}; every handle type is a pointer.
 */
final class NixlCapi {
    private static final NativeLibrary LIBRARY =
            new NativeLibrary("NIXL", "libnixl_capi.so", "dormouse.nixl.dir", "DORMOUSE_NIXL_DIR");

    private static final SymbolBinder BINDER = open();

    // create_configured_agent(const char *name, const agent_config_t *cfg, agent_t *agent)
    static final MethodHandle CREATE_AGENT =
            bind("create_configured_agent", ADDRESS, ADDRESS, ADDRESS);
    // destroy_agent(agent_t agent)
    static final MethodHandle DESTROY_AGENT = bind("destroy_agent", ADDRESS);

    // get_available_plugins(agent_t agent, string_list_t *plugins)
    static final MethodHandle GET_AVAILABLE_PLUGINS =
            bind("get_available_plugins", ADDRESS, ADDRESS);
    // string_list_size(string_list_t list, size_t *size)
    static final MethodHandle STRING_LIST_SIZE = bind("string_list_size", ADDRESS, ADDRESS);
    // string_list_get(string_list_t list, size_t index, const char **str)
    static final MethodHandle STRING_LIST_GET =
            bind("string_list_get", ADDRESS, JAVA_LONG, ADDRESS);
    // destroy_string_list(string_list_t list)
    static final MethodHandle DESTROY_STRING_LIST = bind("destroy_string_list", ADDRESS);
    // get_plugin_params(agent_t agent, const char *plugin_name, mem_list_t *mems, params_t *params)
    static final MethodHandle GET_PLUGIN_PARAMS =
            bind("get_plugin_params", ADDRESS, ADDRESS, ADDRESS, ADDRESS);
    // mem_list_size(mem_list_t list, size_t *size)
    static final MethodHandle MEM_LIST_SIZE = bind("mem_list_size", ADDRESS, ADDRESS);
    // mem_list_get(mem_list_t list, size_t index, mem_type_t *mem_type)
    static final MethodHandle MEM_LIST_GET = bind("mem_list_get", ADDRESS, JAVA_LONG, ADDRESS);
    // destroy_mem_list(mem_list_t list)
    static final MethodHandle DESTROY_MEM_LIST = bind("destroy_mem_list", ADDRESS);

    // create_params(params_t *params)
    static final MethodHandle CREATE_PARAMS = bind("create_params", ADDRESS);
    // params_add(params_t params, const char *key, const char *value)
    static final MethodHandle PARAMS_ADD = bind("params_add", ADDRESS, ADDRESS, ADDRESS);
    // params_is_empty(params_t params, bool *is_empty)
    static final MethodHandle PARAMS_IS_EMPTY = bind("params_is_empty", ADDRESS, ADDRESS);
    // params_create_iterator(params_t params, param_iter_t *iter)
    static final MethodHandle PARAMS_CREATE_ITERATOR =
            bind("params_create_iterator", ADDRESS, ADDRESS);
    // params_iterator_next(param_iter_t iter, const char **key, const char **value, bool *has_next)
    static final MethodHandle PARAMS_ITERATOR_NEXT =
            bind("params_iterator_next", ADDRESS, ADDRESS, ADDRESS, ADDRESS);
    // params_destroy_iterator(param_iter_t iter)
    static final MethodHandle PARAMS_DESTROY_ITERATOR = bind("params_destroy_iterator", ADDRESS);
    // destroy_params(params_t params)
    static final MethodHandle DESTROY_PARAMS = bind("destroy_params", ADDRESS);

    // create_backend(agent_t agent, const char *plugin_name, params_t params, backend_t *backend)
    static final MethodHandle CREATE_BACKEND =
            bind("create_backend", ADDRESS, ADDRESS, ADDRESS, ADDRESS);
    // get_backend_params(agent_t agent, backend_t backend, mem_list_t *mems, params_t *params)
    static final MethodHandle GET_BACKEND_PARAMS =
            bind("get_backend_params", ADDRESS, ADDRESS, ADDRESS, ADDRESS);
    // destroy_backend(backend_t backend)
    static final MethodHandle DESTROY_BACKEND = bind("destroy_backend", ADDRESS);

    // create_opt_args(opt_args_t *args)
    static final MethodHandle CREATE_OPT_ARGS = bind("create_opt_args", ADDRESS);
    // opt_args_set_notif_msg(opt_args_t args, const void *data, size_t len)
    static final MethodHandle OPT_ARGS_SET_NOTIF_MSG =
            bind("opt_args_set_notif_msg", ADDRESS, ADDRESS, JAVA_LONG);
    // opt_args_set_has_notif(opt_args_t args, bool has_notif)
    static final MethodHandle OPT_ARGS_SET_HAS_NOTIF =
            bind("opt_args_set_has_notif", ADDRESS, JAVA_BOOLEAN);
    // destroy_opt_args(opt_args_t args)
    static final MethodHandle DESTROY_OPT_ARGS = bind("destroy_opt_args", ADDRESS);

    // create_reg_dlist(mem_type_t mem_type, reg_dlist_t *dlist)
    static final MethodHandle CREATE_REG_DLIST = bind("create_reg_dlist", JAVA_INT, ADDRESS);
    // reg_dlist_add_desc(reg_dlist_t dlist, uintptr_t addr, size_t len, uint64_t dev_id,
    //                    const void *metadata, size_t metadata_len)
    static final MethodHandle REG_DLIST_ADD_DESC =
            bind(
                    "reg_dlist_add_desc",
                    ADDRESS,
                    JAVA_LONG,
                    JAVA_LONG,
                    JAVA_LONG,
                    ADDRESS,
                    JAVA_LONG);
    // destroy_reg_dlist(reg_dlist_t dlist)
    static final MethodHandle DESTROY_REG_DLIST = bind("destroy_reg_dlist", ADDRESS);
    // register_mem(agent_t agent, reg_dlist_t dlist, opt_args_t opt_args)
    static final MethodHandle REGISTER_MEM = bind("register_mem", ADDRESS, ADDRESS, ADDRESS);
    // deregister_mem(agent_t agent, reg_dlist_t dlist, opt_args_t opt_args)
    static final MethodHandle DEREGISTER_MEM = bind("deregister_mem", ADDRESS, ADDRESS, ADDRESS);

    // get_local_md(agent_t agent, void **data, size_t *len)
    static final MethodHandle GET_LOCAL_MD = bind("get_local_md", ADDRESS, ADDRESS, ADDRESS);
    // get_local_partial_md(agent_t agent, reg_dlist_t descs, void **data, size_t *len, opt_args_t)
    static final MethodHandle GET_LOCAL_PARTIAL_MD =
            bind("get_local_partial_md", ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS);
    // load_remote_md(agent_t agent, const void *data, size_t len, char **agent_name)
    static final MethodHandle LOAD_REMOTE_MD =
            bind("load_remote_md", ADDRESS, ADDRESS, JAVA_LONG, ADDRESS);
    // check_remote_md(agent_t agent, const char *remote_name, xfer_dlist_t descs)
    static final MethodHandle CHECK_REMOTE_MD = bind("check_remote_md", ADDRESS, ADDRESS, ADDRESS);
    // invalidate_remote_md(agent_t agent, const char *remote_agent)
    static final MethodHandle INVALIDATE_REMOTE_MD = bind("invalidate_remote_md", ADDRESS, ADDRESS);
    // agent_make_connection(agent_t agent, const char *remote_agent, opt_args_t opt_args)
    static final MethodHandle MAKE_CONNECTION =
            bind("agent_make_connection", ADDRESS, ADDRESS, ADDRESS);

    // create_xfer_dlist(mem_type_t mem_type, xfer_dlist_t *dlist)
    static final MethodHandle CREATE_XFER_DLIST = bind("create_xfer_dlist", JAVA_INT, ADDRESS);
    // xfer_dlist_add_desc(xfer_dlist_t dlist, uintptr_t addr, size_t len, uint64_t dev_id)
    static final MethodHandle XFER_DLIST_ADD_DESC =
            bind("xfer_dlist_add_desc", ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    // destroy_xfer_dlist(xfer_dlist_t dlist)
    static final MethodHandle DESTROY_XFER_DLIST = bind("destroy_xfer_dlist", ADDRESS);
    // prep_xfer_dlist(agent_t, const char *agent_name, xfer_dlist_t, xfer_dlist_handle_t *,
    // opt_args_t)
    static final MethodHandle PREP_XFER_DLIST =
            bind("prep_xfer_dlist", ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS);
    // release_xfer_dlist_handle(agent_t agent, xfer_dlist_handle_t dlist_handle)
    static final MethodHandle RELEASE_XFER_DLIST_HANDLE =
            bind("release_xfer_dlist_handle", ADDRESS, ADDRESS);

    // make_xfer_req(agent_t, xfer_op_t, xfer_dlist_handle_t local, const int *local_indices,
    // size_t,
    //               xfer_dlist_handle_t remote, const int *remote_indices, size_t,
    //               xfer_req_t *req_hndl, opt_args_t opt_args)
    static final MethodHandle MAKE_XFER_REQ =
            bind(
                    "make_xfer_req",
                    ADDRESS,
                    JAVA_INT,
                    ADDRESS,
                    ADDRESS,
                    JAVA_LONG,
                    ADDRESS,
                    ADDRESS,
                    JAVA_LONG,
                    ADDRESS,
                    ADDRESS);
    // create_xfer_req(agent_t, xfer_op_t, xfer_dlist_t local, xfer_dlist_t remote,
    //                 const char *remote_agent, xfer_req_t *req_hndl, opt_args_t opt_args)
    static final MethodHandle CREATE_XFER_REQ =
            bind("create_xfer_req", ADDRESS, JAVA_INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS);
    // post_xfer_req(agent_t agent, xfer_req_t req_hndl, opt_args_t opt_args)
    static final MethodHandle POST_XFER_REQ = bind("post_xfer_req", ADDRESS, ADDRESS, ADDRESS);
    // get_xfer_status(agent_t agent, xfer_req_t req_hndl)
    static final MethodHandle GET_XFER_STATUS = bind("get_xfer_status", ADDRESS, ADDRESS);
    // get_xfer_telemetry(agent_t agent, xfer_req_t req_hndl, xfer_telemetry_t telemetry)
    static final MethodHandle GET_XFER_TELEMETRY =
            bind("get_xfer_telemetry", ADDRESS, ADDRESS, ADDRESS);
    // release_xfer_req(agent_t agent, xfer_req_t req)
    static final MethodHandle RELEASE_XFER_REQ = bind("release_xfer_req", ADDRESS, ADDRESS);
    // destroy_xfer_req(xfer_req_t req)
    static final MethodHandle DESTROY_XFER_REQ = bind("destroy_xfer_req", ADDRESS);

    // create_notif_map(notif_map_t *notif_map)
    static final MethodHandle CREATE_NOTIF_MAP = bind("create_notif_map", ADDRESS);
    // get_notifs(agent_t agent, notif_map_t notif_map, opt_args_t opt_args)
    static final MethodHandle GET_NOTIFS = bind("get_notifs", ADDRESS, ADDRESS, ADDRESS);
    // notif_map_size(notif_map_t map, size_t *size)
    static final MethodHandle NOTIF_MAP_SIZE = bind("notif_map_size", ADDRESS, ADDRESS);
    // notif_map_get_agent_at(notif_map_t map, size_t index, const char **agent_name)
    static final MethodHandle NOTIF_MAP_GET_AGENT_AT =
            bind("notif_map_get_agent_at", ADDRESS, JAVA_LONG, ADDRESS);
    // notif_map_get_notifs_size(notif_map_t map, const char *agent_name, size_t *size)
    static final MethodHandle NOTIF_MAP_GET_NOTIFS_SIZE =
            bind("notif_map_get_notifs_size", ADDRESS, ADDRESS, ADDRESS);
    // notif_map_get_notif(notif_map_t, const char *agent_name, size_t index, const void **data,
    //                     size_t *len)
    static final MethodHandle NOTIF_MAP_GET_NOTIF =
            bind("notif_map_get_notif", ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS);
    // notif_map_clear(notif_map_t map)
    static final MethodHandle NOTIF_MAP_CLEAR = bind("notif_map_clear", ADDRESS);
    // destroy_notif_map(notif_map_t notif_map)
    static final MethodHandle DESTROY_NOTIF_MAP = bind("destroy_notif_map", ADDRESS);
    // gen_notif(agent_t agent, const char *remote_agent, const void *data, size_t len, opt_args_t)
    static final MethodHandle GEN_NOTIF =
            bind("gen_notif", ADDRESS, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS);

    // bool nixl_capi_is_stub(void)
    private static final MethodHandle IS_STUB = BINDER.function("nixl_capi_is_stub", JAVA_BOOLEAN);

    private NixlCapi() {}

    /**
     * Passes only when the library is there, complete, and the real one.
     *
     * @throws dev.dormouse.foreign.NativeLibraryException when a part is missing
     */
    static void verify() {
        BINDER.verify();
        try {
            if ((boolean) IS_STUB.invokeExact()) {
                throw new IllegalStateException(
                        "load NIXL failed: the library found is NIXL's stub, which can do nothing;"
                                + " run `./dormouse doctor`");
            }
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    private static SymbolBinder open() {
        UcxEnvironment.applyOwnDefaults();
        return LIBRARY.open();
    }

    private static MethodHandle bind(String name, MemoryLayout... parameters) {
        return BINDER.function("nixl_capi_" + name, JAVA_INT, parameters);
    }
}

package dev.dormouse.model.folder;

import dev.dormouse.model.ModelException;
import dev.dormouse.model.gguf.TensorInfo;
import dev.dormouse.model.json.JsonFields;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** The tensors of a folder, from one safetensors file or from several and their index. */
final class FolderTensors implements AutoCloseable {
    private static final String SINGLE = "model.safetensors";
    private static final String INDEX = "model.safetensors.index.json";
    private static final int MAX_SHARDS = 1024;

    private record Place(TensorInfo tensor, SafetensorsFile file) {}

    private final Path folder;
    private final List<SafetensorsFile> files = new ArrayList<>();
    private final Map<String, Place> places = new LinkedHashMap<>();

    private FolderTensors(Path folder) {
        this.folder = folder;
    }

    /**
     * Opens all files.
     *
     * @throws ModelException when one is missing or malformed, or the index contradicts them
     */
    static FolderTensors open(Path folder, long indexLimitBytes) {
        FolderTensors tensors = new FolderTensors(folder);
        try {
            if (Files.exists(folder.resolve(SINGLE))) {
                tensors.add(SINGLE);
            } else {
                JsonFields index =
                        JsonFields.findFile(folder.resolve(INDEX), indexLimitBytes)
                                .orElseThrow(() -> tensors.noWeights());
                tensors.addIndexed(index.object("weight_map"));
            }
            return tensors;
        } catch (RuntimeException | Error e) {
            tensors.close();
            throw e;
        }
    }

    private ModelException noWeights() {
        return new ModelException(
                "open model %s: it has neither %s nor %s; weights in other formats are not supported"
                        .formatted(folder, SINGLE, INDEX));
    }

    private void addIndexed(JsonFields weightMap) {
        Map<String, String> shardOf = new LinkedHashMap<>();
        weightMap.names().forEach(tensor -> shardOf.put(tensor, weightMap.string(tensor)));
        TreeSet<String> shards = new TreeSet<>(shardOf.values());
        if (shards.size() > MAX_SHARDS) {
            throw contradiction(shards.size() + " files, the limit is " + MAX_SHARDS);
        }
        for (String shard : shards) {
            if (!shard.matches("[A-Za-z0-9][A-Za-z0-9._-]*\\.safetensors")) {
                throw contradiction("'" + shard + "', which is no name of a file in the folder");
            }
            for (String tensor : add(shard)) {
                if (!shard.equals(shardOf.remove(tensor))) {
                    throw contradiction("tensor '" + tensor + "' elsewhere than in " + shard);
                }
            }
        }
        if (!shardOf.isEmpty()) {
            throw contradiction(
                    "tensor '" + shardOf.keySet().iterator().next() + "', which is in no file");
        }
    }

    private ModelException contradiction(String what) {
        return new ModelException("open model %s: %s names %s".formatted(folder, INDEX, what));
    }

    private Collection<String> add(String name) {
        SafetensorsFile file = SafetensorsFile.open(folder.resolve(name));
        files.add(file);
        file.tensors().forEach((tensor, info) -> places.put(tensor, new Place(info, file)));
        return file.tensors().keySet();
    }

    Collection<String> names() {
        return Collections.unmodifiableCollection(places.keySet());
    }

    @Nullable TensorInfo find(String name) {
        @Nullable Place place = places.get(name);
        return place == null ? null : place.tensor;
    }

    MemorySegment data(TensorInfo tensor) {
        @Nullable Place place = places.get(tensor.name());
        if (place == null || !place.tensor.equals(tensor)) {
            throw new ModelException(
                    "read %s: tensor '%s' is not of this folder".formatted(folder, tensor.name()));
        }
        return place.file.data(tensor);
    }

    @Override
    public void close() {
        files.forEach(SafetensorsFile::close);
    }
}

package dev.dormouse.testkit;

import dev.dormouse.transport.TransportException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;

/** The bytes by which a {@link ModelTransport} makes itself known. */
record ModelMetadata(String agentName, long incarnation, List<ModelPeer.RemoteSection> sections) {
    private static final int MAGIC = 0x4d4f_4445;
    private static final int MAX_SECTIONS = 65_536;

    byte[] encode() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeInt(MAGIC);
            out.writeUTF(agentName);
            out.writeLong(incarnation);
            out.writeInt(sections.size());
            for (ModelPeer.RemoteSection section : sections) {
                out.writeLong(section.key());
                out.writeLong(section.address());
                out.writeLong(section.lengthBytes());
            }
            out.writeInt(~MAGIC);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    static ModelMetadata decode(byte[] metadata) {
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(metadata))) {
            require(in.readInt() == MAGIC, "it does not start like metadata");
            String name = in.readUTF();
            long incarnation = in.readLong();
            int count = in.readInt();
            require(count >= 0 && count <= MAX_SECTIONS, count + " sections");
            List<ModelPeer.RemoteSection> sections = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                sections.add(
                        new ModelPeer.RemoteSection(in.readLong(), in.readLong(), in.readLong()));
            }
            require(in.readInt() == ~MAGIC && in.read() < 0, "it does not end like metadata");
            return new ModelMetadata(name, incarnation, sections);
        } catch (IOException e) {
            throw new TransportException(
                    "load peer: " + metadata.length + " bytes are cut short", e);
        }
    }

    private static void require(boolean condition, String what) {
        if (!condition) {
            throw new TransportException("load peer: unusable metadata: " + what);
        }
    }
}

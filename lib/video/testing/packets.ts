import { ALL_FORMATS, BlobSource, EncodedPacketSink, Input } from 'mediabunny';

/** The bytes of each packet of a file's first video or audio track. */
export async function packetsOf(file: Blob, kind: 'video' | 'audio' = 'video') {
  const input = new Input({ source: new BlobSource(file), formats: ALL_FORMATS });
  const track =
    kind === 'video' ? await input.getPrimaryVideoTrack() : await input.getPrimaryAudioTrack();
  if (!track) throw new Error(`no ${kind} track`);
  const packets: Uint8Array[] = [];
  for await (const { data } of new EncodedPacketSink(track).packets()) packets.push(data);
  input.dispose();
  return packets;
}

/** What a file in this folder says of another gateway. Types. */

interface PeerSetting {
  /** For its files; empty. */
  readonly directory: string;
  /** Where it is to listen, on 127.0.0.1. */
  readonly port: number;
  /** Origin of the vendor, which speaks chat completions under `/v1`. */
  readonly upstream: string;
  /** The model that is asked for, on either side. */
  readonly model: string;
}

export interface Peer {
  /** A path that answers 200 once it serves. */
  readonly ready: string;
  /** Headers that a client sends beside the key. */
  headers?(upstream: string): Readonly<Record<string, string>>;
  /** Writes its files and gives the command that starts it. */
  start(setting: PeerSetting): readonly string[];
}

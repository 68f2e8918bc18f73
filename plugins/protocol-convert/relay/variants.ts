/** Protocols that are another protocol at addresses of their own: their requests, and the relay to them. Pure. */
import { changedBody, type MemberChanges } from '../../common/kit/body-edits.ts';
import type {
  AnsweringProtocol,
  Protocol,
  VariantProtocol,
  VariantRequest,
  WireProtocol,
} from '../../common/wire/protocols.ts';

/** A protocol as it is spoken with upstreams. */
export interface SpokenProtocol extends WireProtocol {
  /** It is a variant of a protocol whose clients are relayed to it. */
  readonly variant?: Pick<VariantProtocol, 'variantOf' | 'address' | 'members'> & {
    /** The protocol of relayed answers. */
    readonly answering: AnsweringProtocol;
  };
}

/** Whether clients of a protocol need no translation. */
export function relays(upstream: SpokenProtocol | undefined, client: string): boolean {
  return upstream?.name === client || upstream?.variant?.variantOf === client;
}

/** The members that differ in a request to a variant. */
export function changedMembers(
  { members }: Pick<VariantProtocol, 'members'>,
  request: VariantRequest,
): MemberChanges | undefined {
  return typeof members === 'function' ? members(request) : members;
}

/** All protocols by name. Throws for a variant of a protocol that does not exist. */
export function spokenProtocols(
  all: readonly (WireProtocol | Protocol | VariantProtocol)[],
): ReadonlyMap<string, SpokenProtocol | Protocol> {
  const known = new Map<string, SpokenProtocol | Protocol>();
  for (const protocol of all) if (!isVariant(protocol)) known.set(protocol.name, protocol);
  for (const variant of all.filter(isVariant)) {
    const base = known.get(variant.variantOf);
    if (base === undefined || 'variant' in base)
      throw new Error(`the protocol "${variant.name}" is a variant of "${variant.variantOf}", which no plugin adds`);
    known.set(variant.name, spoken(variant, base));
  }
  return known;
}

function isVariant(protocol: WireProtocol | Protocol | VariantProtocol): protocol is VariantProtocol {
  return 'variantOf' in protocol;
}

function spoken(variant: VariantProtocol, base: WireProtocol | Protocol): SpokenProtocol {
  const { name, path, auth, passedHeaders, defaultHeaders, fixedHeaders, readError, counting, members } = variant;
  const { codec, createUsageMeter, isOpening } = base;
  const framing = variant.framing ?? base.framing;
  const reading = readError === undefined ? {} : { readError };
  return {
    ...{ name, path, auth, passedHeaders, defaultHeaders, ...reading, createUsageMeter },
    ...(base.answersOnce === undefined ? {} : { answersOnce: base.answersOnce }),
    ...(framing === undefined ? {} : { framing }),
    ...(isOpening === undefined ? {} : { isOpening }),
    ...(fixedHeaders === undefined ? {} : { fixedHeaders }),
    codec: {
      needsBytes: codec.needsBytes,
      encodeRequest(prompt, context) {
        const encoded = codec.encodeRequest(prompt, context);
        const { stream, target, traits } = context;
        const changes = changedMembers(variant, { json: encoded.body, headers: {}, traits });
        return {
          ...encoded,
          path: variant.address(encoded.path, { model: target.model, stream }),
          body: changedBody(encoded.body, changes ?? {}),
        };
      },
      createDecoder: codec.createDecoder,
      decodeReply: codec.decodeReply,
      ...(counting === undefined ? {} : { counting }),
    },
    variant: {
      variantOf: variant.variantOf,
      address: (from, request) => variant.address(from, request),
      ...(members === undefined ? {} : { members }),
      answering: { ...base, ...reading, ...(framing === undefined ? {} : { framing }) },
    },
  };
}

/** The request as one target gets it: without files of earlier turns that another vendor, or another key, holds. */
import { isObject, tryParseBytes } from '../../../core/json/json.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import type { Opened } from '../../common/wire/protocols.ts';
import { withoutIds } from './earlier-ids.ts';

/** The same object where this target may get all that the request names. */
export function withoutHeldElsewhere(opened: Opened, target: Target): Opened {
  const held = opened.vendorIds?.held;
  if (held === undefined) return opened;
  const { uncheckedIds } = target.upstream;
  const isLeftOut = (id: string) => {
    if (!held.has(id)) return false;
    const holder = held.get(id);
    if (holder === undefined) return uncheckedIds?.all !== true && uncheckedIds?.shared.has(id) !== true;
    return holder.provider !== target.provider || holder.credential !== target.credential;
  };
  if (![...held.keys()].some(isLeftOut)) return opened;
  const { json, fields } = withoutIds(opened.json, isLeftOut);
  const name = opened.protocol.codec.spelling.file ?? fields[0] ?? 'file';
  return {
    ...opened,
    json,
    hasLeftOut: true,
    prepare(to, members) {
      const prepared = opened.prepare(to, members);
      const sent = tryParseBytes(prepared.body);
      if (!isObject(sent)) return prepared;
      const body = Buffer.from(JSON.stringify(withoutIds(sent, isLeftOut).json));
      return { ...prepared, body, dropped: [...prepared.dropped, name] };
    },
  };
}

/** What stands below parts that come late can be clicked when those have their height: nothing moves away from a click, or under one. */
import { useIsFetching } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useState } from 'react';

/** Parts that an answer has brought may ask for more, or change their height once they have measured themselves. */
const quietMs = 50;
/** An answer that takes longer is not waited for. */
const longestMs = 5_000;
/** Tables keep the place of their rows, and stand in such a part themselves. */
const ofTables = new Set<unknown>(['list', 'total']);

export function Steady({ children }: { readonly children: ReactNode }) {
  const late = useIsFetching({
    predicate: ({ state, queryKey }) => state.status === 'pending' && !ofTables.has(queryKey[0]),
  });
  const box = useRef<HTMLDivElement>(null);
  const [isSteady, setSteady] = useState(false);
  useEffect(() => {
    if (isSteady) return undefined;
    return late > 0 ? after(longestMs, () => setSteady(true)) : whenStill(box.current!, () => setSteady(true));
  }, [isSteady, late]);
  return (
    <div ref={box} className="steady" data-waiting={isSteady ? undefined : true}>
      {children}
    </div>
  );
}

function after(ms: number, then: () => void): () => void {
  const timer = setTimeout(then, ms);
  return () => clearTimeout(timer);
}

/** Calls when no code is fetched for a part above, and the place has stayed the same over a few frames. */
function whenStill(box: HTMLElement, then: () => void): () => void {
  const until = performance.now() + longestMs;
  let place: number | undefined;
  let frame = 0;
  const look = () => {
    const now = placeOf(box);
    if ((now === place && !isBusyAbove(box)) || performance.now() > until) return then();
    place = now;
    timer = setTimeout(inFrame, quietMs);
  };
  // What is drawn now measures itself in the frame that comes.
  const inFrame = () => {
    frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(look);
    });
  };
  place = placeOf(box);
  let timer = setTimeout(inFrame, quietMs);
  return () => {
    clearTimeout(timer);
    cancelAnimationFrame(frame);
  };
}

const placeOf = ({ firstElementChild }: HTMLElement) =>
  firstElementChild === null ? 0 : firstElementChild.getBoundingClientRect().top + scrollY;

/** Parts out of sight are fetched when they come into it, and have their height. */
const isBusyAbove = (box: HTMLElement) =>
  [...document.querySelectorAll('main [role="status"] > .mantine-Skeleton-root')].some((part) => {
    const { top, bottom } = part.getBoundingClientRect();
    const isAbove = (box.compareDocumentPosition(part) & Node.DOCUMENT_POSITION_PRECEDING) !== 0;
    return isAbove && top < innerHeight && bottom > 0;
  });

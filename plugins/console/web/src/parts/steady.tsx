/** What stands below parts that come late can be clicked when those have their height: nothing moves away from a click, or under one. */
import { useIsFetching } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';

/** Parts that an answer has brought may ask for more. */
const quietMs = 50;
/** An answer that takes longer is not waited for. */
const longestMs = 5_000;
/** Tables keep the place of their rows, and stand in such a part themselves. */
const ofTables = new Set<unknown>(['list', 'total']);

export function Steady({ children }: { readonly children: ReactNode }) {
  const late = useIsFetching({
    predicate: ({ state, queryKey }) => state.status === 'pending' && !ofTables.has(queryKey[0]),
  });
  const [isSteady, setSteady] = useState(false);
  useEffect(() => {
    if (isSteady) return undefined;
    const timer = setTimeout(() => setSteady(true), late > 0 ? longestMs : quietMs);
    return () => clearTimeout(timer);
  }, [isSteady, late]);
  return (
    <div className="steady" data-waiting={isSteady ? undefined : true}>
      {children}
    </div>
  );
}

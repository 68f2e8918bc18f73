/** One call of the client from end to end. */
import { useQuery } from '@tanstack/react-query';
import { get } from '../../api/client.ts';
import type { RequestStory } from '../../api/types.ts';

/** How long after a call its charge may still come. */
const patienceMs = 15_000;

/**
 * The timeline of a call, asked for again where the call has only just ended: its row is written shortly after its end, its
 * charge may follow a moment later.
 */
export function useStory(id: string | undefined) {
  return useQuery({
    queryKey: ['usage', 'one', id],
    queryFn: ({ signal }) => get<RequestStory>(`/usage/${encodeURIComponent(id!)}`, {}, signal),
    enabled: id !== undefined,
    retry: 5,
    retryDelay: 800,
    refetchInterval: ({ state: { data } }) =>
      data?.charge === null && Date.now() - endOf(data.request) < patienceMs ? 1000 : false,
  });
}

const endOf = ({ receivedAt, totalMs }: RequestStory['request']) => Date.parse(receivedAt) + totalMs;

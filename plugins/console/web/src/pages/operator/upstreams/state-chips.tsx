/** How many upstreams are in which state; a chip shows these alone. */
import { Chip, Group } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useSearchState } from '../../../parts/search-state.ts';
import { upstreamColors } from '../parts/badges.tsx';
import type { UpstreamState } from '../sums/upstream-state.ts';

export function StateChips({ states }: { readonly states: readonly UpstreamState[] }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const present = [...new Set(states)];
  if (present.length < 2 && search['state'] === undefined) return null;
  return (
    <Group gap="xs">
      {present.map((state) => (
        <Chip
          key={state}
          size="xs"
          color={upstreamColors[state]}
          variant="light"
          checked={search['state'] === state}
          onChange={(checked) => change({ state: checked ? state : undefined })}
        >
          {t(`operator.traffic.upstreams.state.${state}`)} · {states.filter((one) => one === state).length}
        </Chip>
      ))}
    </Group>
  );
}

/** A number on a card, with a line below it; the number opens the rows behind it. */
import { Group, Paper, SimpleGrid, Text } from '@mantine/core';
import { IconArrowUpRight } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense } from 'react';

// The first page's figures have changes once they are there.
const Change = lazy(() => import('./change.tsx'));

interface StatProps {
  readonly label: string;
  readonly value: ReactNode;
  readonly note?: ReactNode;
  /** Now and in the time before. */
  readonly change?: readonly [now: number | null | undefined, before: number | null | undefined];
  /** Page with the rows behind the number. */
  readonly to?: string;
  readonly search?: Readonly<Record<string, string>>;
  readonly tone?: 'good' | 'bad' | undefined;
}

export function Stat({ label, value, note, change, to, search = {}, tone }: StatProps) {
  const body = (
    <>
      <Group justify="space-between" gap={4} wrap="nowrap">
        <Text fz="xs" c="dimmed" fw={500}>
          {label}
        </Text>
        {to !== undefined && <IconArrowUpRight size={14} className="stat-arrow" aria-hidden />}
      </Group>
      <Text component="div" className="stat-value number" data-tone={tone}>
        {value}
      </Text>
      {(note !== undefined || change !== undefined) && (
        <Text component="div" fz="xs" c="dimmed" mt={2}>
          {change !== undefined && (
            <Suspense>
              <Change now={change[0]} before={change[1]} />
            </Suspense>
          )}{' '}
          {note}
        </Text>
      )}
    </>
  );
  if (to === undefined)
    return (
      <Paper withBorder className="panel stat">
        {body}
      </Paper>
    );
  return (
    <Paper
      withBorder
      className="panel stat stat-link"
      renderRoot={(props) => <Link {...props} to={to} search={search} />}
    >
      {body}
    </Paper>
  );
}

/** Cards side by side: as many as fit. `slim`: each is a line, below figures that matter more. */
export function StatRow({ children, slim = false }: { readonly children: ReactNode; readonly slim?: boolean }) {
  return (
    <SimpleGrid
      type="container"
      cols={{ base: 1, '340px': 2, '900px': 4 }}
      spacing="sm"
      {...(slim ? { className: 'stats-slim' } : {})}
    >
      {children}
    </SimpleGrid>
  );
}

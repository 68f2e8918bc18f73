/** A credit line: what is left of it this month, and what is to be paid for earlier ones. For clients and operators. */
import { Badge, Button, Group, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import i18next from 'i18next';
import { useTranslation } from 'react-i18next';
import { get } from '../../api/client.ts';
import type { CreditLineAnswer, CreditMonthRow } from '../../api/types.ts';
import { Money } from '../../parts/money.tsx';
import { Panel } from '../../parts/page.tsx';
import { Time } from '../../parts/time.tsx';
import english from '../../texts/en/credit-line.ts';

/** The English texts come with this page; the other languages have them from the start. */
i18next.addResourceBundle('en', 'translation', { client: english }, true);

const colors = { running: 'gray', due: 'blue', overdue: 'red', paid: 'green' } as const;

export const creditLineKey = (path: string) => ['credit line', path];

interface CreditLineProps {
  /** Where the line is read: `/credit-line`. */
  readonly path: string;
  /** Opens the dialog that decides on it; absent: the viewer may not. */
  readonly onSet?: (() => void) | undefined;
}

/** Without a line: nothing for clients, and what can be done for operators. */
export default function CreditLine({ path, onSet }: CreditLineProps) {
  const { t } = useTranslation();
  const { data } = useQuery({ queryKey: creditLineKey(path), queryFn: () => get<CreditLineAnswer>(path) });
  if (data === undefined || (data.line === null && onSet === undefined)) return null;
  const { line } = data;
  return (
    <Panel
      title={t('client.creditLine.title')}
      hint={t('client.creditLine.hint')}
      actions={
        onSet && (
          <Button variant="default" size="xs" onClick={onSet}>
            {t('client.creditLine.set')}
          </Button>
        )
      }
    >
      {line === null ? (
        <Text fz="sm" c="dimmed">
          {t('client.creditLine.none')}
        </Text>
      ) : (
        <>
          <Group gap="lg" mb="sm">
            <Text fz="sm" component="div">
              {t('client.creditLine.amount')} <Money of={line.amount} />
            </Text>
            <Text fz="sm" component="div">
              {t('client.creditLine.left')} <Money of={line.left} />
            </Text>
            {line.isStopped && <Badge color="red">{t('client.creditLine.stopped')}</Badge>}
            {line.stopsAt !== null && (
              <Text fz="sm" component="div">
                {t('client.creditLine.stopsAt')} <Time at={line.stopsAt} />
              </Text>
            )}
          </Group>
          <CreditMonths of={line.months} />
        </>
      )}
    </Panel>
  );
}

/** `exact`: amounts to the nano-dollar. */
export function CreditMonths({
  of,
  exact = false,
}: {
  readonly of: readonly CreditMonthRow[];
  readonly exact?: boolean;
}) {
  const { t } = useTranslation();
  return (
    <Table.ScrollContainer minWidth={420}>
      <Table aria-label={t('client.creditLine.title')}>
        <Table.Thead>
          <Table.Tr>
            {(['month', 'used', 'paid', 'due', 'dueAt'] as const).map((name) => (
              <Table.Th key={name}>{t(`client.creditLine.${name}`)}</Table.Th>
            ))}
            <Table.Th />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {of.map(({ month, used, paid, due, dueAt, state }) => (
            <Table.Tr key={month}>
              <Table.Td>{month}</Table.Td>
              <Table.Td>
                <Money of={used} exact={exact} />
              </Table.Td>
              <Table.Td>
                <Money of={paid} exact={exact} />
              </Table.Td>
              <Table.Td>
                <Money of={due} exact={exact} />
              </Table.Td>
              <Table.Td>
                <Time at={dueAt} />
              </Table.Td>
              <Table.Td>
                <Badge variant="light" color={colors[state]}>
                  {t(`client.creditLine.states.${state}`)}
                </Badge>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

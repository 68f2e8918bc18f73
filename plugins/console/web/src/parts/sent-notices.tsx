/** Notices that were made lately, and what became of each. */
import { Badge, Group, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Notices } from '../api/types.ts';
import { faultWords } from './delivery-fault.ts';
import { Time } from './time.tsx';

const spoken = ['en', 'de', 'ja', 'zh'];
/** Messages are written in these languages alone. */
export const noticeLanguage = (language: string) => (spoken.includes(language) ? language : 'en');

export function SentNotices({ rows }: { readonly rows: Notices['last'] }) {
  const { t } = useTranslation();
  if (rows.length === 0) return null;
  return (
    <Stack gap={4}>
      {rows.map((one) => (
        <Group key={`${one.at} ${one.kind} ${one.channel}`} gap="xs">
          <Text fz="sm" component="div">
            <Time at={one.at} />
          </Text>
          <Text fz="sm">{one.title}</Text>
          <Text fz="sm" c="dimmed">
            {t(`client.profile.notices.${one.channel}`)}
          </Text>
          {one.sentAt === null && one.fault !== null && (
            <Badge size="sm" color={one.waits ? 'yellow' : 'red'} variant="light" radius="sm" tt="none">
              {faultWords(one.fault, t)}
            </Badge>
          )}
        </Group>
      ))}
    </Stack>
  );
}

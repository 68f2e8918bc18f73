/** Leads from a request with a recorded body to the playground. */
import { Button } from '@mantine/core';
import { IconRepeat } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import '../../parts/insight-texts.ts';

export function ReplayLink({ id }: { readonly id: string }) {
  const { t } = useTranslation();
  return (
    <Button
      variant="default"
      size="xs"
      w="fit-content"
      leftSection={<IconRepeat size={15} />}
      renderRoot={(props) => <Link {...props} to="/playground" search={{ replay: id } as never} />}
    >
      {t('client.replay')}
    </Button>
  );
}

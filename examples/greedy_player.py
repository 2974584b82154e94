"""A player on the network in ten lines: it chooses the best immediate goal. Run it, and in a second terminal a host:

python examples/greedy_player.py
gamelore host tictactoe --player xplayer=http://127.0.0.1:9147 --player oplayer=random --matches 20
"""

from gamelore import PositionPlayer
from gamelore.net import serve


class Greedy(PositionPlayer):
    def move(self, position, role):
        others = {name: moves[0] for name, moves in position.legal.items()}  # waiting roles have one move

        def payment(move):
            return position.play(others | {role: move}).goals[role] or 0

        return max(position.legal[role], key=payment)


if __name__ == "__main__":
    serve(Greedy)
